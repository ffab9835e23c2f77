"""Workers are real child processes: what they keep, what they pass on, how they die, and that none is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.workers import Worker, WorkerDiedError, WorkerEndedError
from tests.tasks.doubles import child_calls
from tests.tasks.doubles.processes import gone_within, is_running

PARENT = """
import sys, time
from tasks.workers import Worker
from tests.tasks.doubles import child_calls

workers = [Worker("busy"), Worker("idle")]
if __name__ == "__main__":
    pids = [worker.call(child_calls.count)[0] for worker in workers]
    workers[0].submit(child_calls.sleep, 600)
    print(*pids, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test")
    yield worker
    worker.close(grace=0)


def test_one_child_answers_all_calls_and_keeps_its_state(worker: Worker) -> None:
    first, second = worker.call(child_calls.count), worker.call(child_calls.count)
    assert first[0] == second[0] != os.getpid()
    assert (first[1], second[1]) == (1, 2)


def test_an_exception_passes_through_and_the_child_goes_on(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    with pytest.raises(LookupError, match="no such lesson"):
        worker.call(child_calls.fail, "no such lesson")
    assert worker.call(child_calls.count) == (pid, 2)


def test_a_child_that_dies_is_said_so_and_the_next_call_has_a_new_one(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    with pytest.raises(WorkerDiedError, match="the test process died"):
        worker.call(child_calls.die)
    new, calls = worker.call(child_calls.count)
    assert new != pid
    assert calls == 1


def test_a_child_that_is_killed_between_two_calls(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    os.kill(pid, signal.SIGKILL)
    assert gone_within(2, pid)
    time.sleep(0.3)
    assert worker.call(child_calls.count)[1] == 1


def test_calls_are_answered_in_order(worker: Worker) -> None:
    futures = [worker.submit(child_calls.count) for _ in range(5)]
    assert [worker.result(future)[1] for future in futures] == [1, 2, 3, 4, 5]


def test_environment_and_log_reach_the_child_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "logs" / "test.log"
    worker = Worker("test", {"NIGHTSCHOOL_TEST": "child", "NIGHTSCHOOL_OTHER": "child"}, log)
    monkeypatch.setenv("NIGHTSCHOOL_TEST", "parent")
    try:
        assert worker.call(child_calls.say, "first") == "child"
        assert (os.environ["NIGHTSCHOOL_TEST"], os.environ.get("NIGHTSCHOOL_OTHER")) == ("parent", None)
        worker.close()
        assert worker.call(child_calls.say, "second") == "child"
    finally:
        worker.close(grace=0)
    lines = log.read_text().splitlines()
    assert {"out first", "err first", "out second", "err second"} <= set(lines)


def test_a_child_outlives_the_thread_that_first_called_it(worker: Worker) -> None:
    """PR_SET_PDEATHSIG fires when the thread that made the child ends, not when the process does."""
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.append(worker.call(child_calls.count)))
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert worker.call(child_calls.count) == (found[0][0], 2)


def test_ctrl_c_is_the_parents_business(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    os.kill(pid, signal.SIGINT)
    assert worker.call(child_calls.count) == (pid, 2)


def test_close_ends_an_idle_child_at_once_and_a_later_call_starts_another(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    started = time.monotonic()
    worker.close(grace=30)
    assert time.monotonic() - started < 10
    assert not is_running(pid)
    assert worker.call(child_calls.count)[1] == 1


def test_close_lets_a_call_finish_within_its_grace_and_no_longer(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    short = worker.submit(child_calls.sleep, 0.5)
    time.sleep(0.2)  # a call that has not reached the child yet is cancelled
    worker.close(grace=30)
    assert worker.result(short) == 0.5
    assert not is_running(pid)

    pid, _ = worker.call(child_calls.count)
    endless = worker.submit(child_calls.sleep, 600)
    time.sleep(0.2)
    started = time.monotonic()
    worker.close(grace=0.5)
    assert 0.4 < time.monotonic() - started < 10
    assert not is_running(pid)
    with pytest.raises(WorkerDiedError):
        worker.result(endless)


def test_close_twice_and_before_any_call() -> None:
    worker = Worker("test")
    worker.close()
    worker.call(child_calls.count)
    worker.close()
    worker.close()


def test_a_child_that_was_ended_is_not_started_again(worker: Worker) -> None:
    """Neither by the call that it was ended in, whose error is not one that is tried again, nor by a later one."""
    worker.call(os.getpid)
    waiting = worker.submit(time.sleep, 60)
    worker.end(grace=0)
    with pytest.raises(WorkerEndedError, match="was ended"):
        worker.result(waiting)
    with pytest.raises(WorkerEndedError, match="was ended"):
        worker.call(os.getpid)
    assert not worker.running


def test_a_parent_killed_with_sigkill_leaves_no_child_behind(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    here = Path(__file__).parents[2]
    command = [sys.executable, str(script)]
    environment = os.environ | {"PYTHONPATH": str(here)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(children) == 2
        assert all(map(is_running, children))
        parent.kill()
    assert gone_within(2, *children)
