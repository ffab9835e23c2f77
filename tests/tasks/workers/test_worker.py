"""Workers are real child processes: what they keep, how they die or hang, and that none is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tasks.workers.heartbeat import FIRST_LIMIT, Heartbeat, next_limit, processor_seconds
from tasks.workers.worker import HoursOverError, Worker, WorkerDiedError, WorkerEndedError, working_on
from tests.tasks.doubles import child_calls
from tests.tasks.doubles.processes import gone_within, is_running
from tests.waiting import awaited

PARENT = """
import sys, time
from tasks.workers.worker import Worker
from tests.tasks.doubles import child_calls

workers = [Worker("busy"), Worker("idle")]
if __name__ == "__main__":
    pids = [worker.call(child_calls.count)[0] for worker in workers]
    workers[0].submit(child_calls.sleep, 600)
    print(*pids, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def losses() -> list[str]:
    return []


@pytest.fixture
def worker(losses: list[str], tmp_path: Path) -> Iterator[Worker]:
    worker = Worker("test", log=tmp_path / "test.log", on_loss=losses.append, quiet=2.0)
    yield worker
    worker.end(grace=0)


def test_what_a_child_has_started_ends_with_it(worker: Worker) -> None:
    """Such as the programs that a user's grader runs."""
    started = worker.call(child_calls.start_another)
    worker.end(grace=0)
    assert gone_within(10, started)


def test_one_child_answers_all_calls_and_keeps_its_state(worker: Worker) -> None:
    first, second = worker.call(child_calls.count), worker.call(child_calls.count)
    assert first[0] == second[0] != os.getpid()
    assert (first[1], second[1]) == (1, 2)
    with pytest.raises(LookupError, match="no such lesson"):
        worker.call(child_calls.fail, "no such lesson")
    futures = [worker.submit(child_calls.count) for _ in range(3)]
    assert [worker.result(future) for future in futures] == [(first[0], 3), (first[0], 4), (first[0], 5)]


def test_a_child_that_dies_is_replaced(worker: Worker, losses: list[str]) -> None:
    pid, _ = worker.call(child_calls.count)
    with pytest.raises(WorkerDiedError, match="the test process died"):
        worker.call(child_calls.die)
    assert losses == ["the test process died (killed, out of memory, or crashed) at die"]
    replaced, calls = worker.call(child_calls.count)
    assert replaced != pid
    assert calls == 1
    assert not worker.lost
    os.kill(replaced, signal.SIGKILL)  # between two calls
    awaited(lambda: worker.lost, "loss", 60)
    assert worker.call(child_calls.count)[1] == 1
    worker.end(grace=0)
    assert len(losses) == 1  # a child that is ended is no loss


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
        worker.end(grace=0)
    assert {"out first", "err first", "out second", "err second"} <= set(log.read_text().splitlines())


def test_a_child_outlives_the_thread_that_first_called_it(worker: Worker) -> None:
    """PR_SET_PDEATHSIG fires when the thread that made the child ends, not when the process does."""
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.append(worker.call(child_calls.count)))
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert worker.call(child_calls.count) == (found[0][0], 2)


def test_ctrl_c_is_left_to_the_parent(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    os.kill(pid, signal.SIGINT)
    assert worker.call(child_calls.count) == (pid, 2)


def test_a_parent_killed_with_sigkill_leaves_no_child_behind(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(children) == 2
        assert all(map(is_running, children))
        parent.kill()
    assert gone_within(2, *children)


# --- closing


def test_close_ends_an_idle_child_at_once(worker: Worker) -> None:
    worker.close()  # before any call
    pid, _ = worker.call(child_calls.count)
    started = time.monotonic()
    worker.close(grace=30)
    worker.close()
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


def test_a_worker_that_was_ended_starts_no_child_again(worker: Worker) -> None:
    """Neither does the call that it was ended in: its error is not one that is tried again."""
    pid, _ = worker.call(child_calls.count)
    waiting = worker.submit(child_calls.sleep, 60)
    os.kill(pid, signal.SIGSTOP)  # a stopped child cannot delay the end
    worker.end(grace=0.2)
    assert not is_running(pid)
    with pytest.raises(WorkerEndedError, match="was ended"):
        worker.result(waiting)
    with pytest.raises(WorkerEndedError, match="was ended"):
        worker.call(child_calls.count)
    assert not worker.running


def test_a_paused_child_goes_on_where_it_was(worker: Worker) -> None:
    """However long its pause is, it does not count as stuck."""
    worker.pause()  # nothing has started
    worker.call(child_calls.count)
    worker.quiet = 1.0
    call = worker.submit(child_calls.sleep, 0.1)
    worker.pause()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(worker.result, call)
        time.sleep(2.0)
        assert not call.done()
        worker.pause(False)
        waiting.result()


def test_a_call_not_begun_when_its_worker_ended_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.workers.heartbeat.POLL", 0.2)
    worker = Worker("test", log=tmp_path / "test.log", quiet=60.0)
    calls = [worker.submit(child_calls.sleep, 60) for _ in range(4)]  # one runs, one waits in the child's queue
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(worker.result, calls[-1])
        time.sleep(0.5)
        worker.end(grace=0)
        with pytest.raises(WorkerEndedError):
            waiting.result(10)


# --- hanging


@pytest.mark.parametrize("how", ["stopped", "sleeping"])
def test_a_child_without_sign_of_life_is_ended(worker: Worker, losses: list[str], tmp_path: Path, how: str) -> None:
    pid, _ = worker.call(child_calls.count)
    if how == "stopped":
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(WorkerDiedError) as caught, working_on("sample"):  # which is tried again
        worker.call(child_calls.sleep, 600)
    what = "the test process was stuck: no processor time used for 2 s; it was ended at sample · sleep"
    assert str(caught.value) == f"{what}; its log: {tmp_path}/test.log"
    assert losses == [what]
    assert not is_running(pid)
    assert worker.call(child_calls.count)[1] == 1


def test_a_child_that_works_is_left_alone(worker: Worker, losses: list[str]) -> None:
    worker.quiet = 0.5
    assert worker.call(child_calls.spin, 1.0) == 1.0  # longer than it may be quiet
    assert losses == []


def test_a_call_that_takes_far_longer_than_any_of_its_kind_is_ended(
    worker: Worker, losses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.workers.heartbeat.LEAST_LIMIT", 0.5)
    worker.call(child_calls.count)  # its start is not of these kinds
    with working_on("update"):
        worker.call(child_calls.spin, 0.0)
    with working_on("distill"):  # which has no history
        assert worker.call(child_calls.spin, 0.8) == 0.8
    with pytest.raises(WorkerDiedError, match=r"not finished .*update · spin"), working_on("update"):
        worker.call(child_calls.spin, 600)
    assert len(losses) == 1


def test_no_call_is_waited_for_longer_than_the_nights_hours(worker: Worker, losses: list[str]) -> None:
    pid, _ = worker.call(child_calls.count)
    worker.until = time.time() + 0.5
    with pytest.raises(HoursOverError, match="before spin was done"):
        worker.call(child_calls.spin, 600)
    assert not is_running(pid)
    with pytest.raises(HoursOverError, match="before count began"):
        worker.call(child_calls.count)
    assert not worker.running
    assert losses == []  # the child did nothing wrong
    worker.until = time.time() + 60
    assert worker.call(child_calls.count)[1] == 1


# --- when a child counts as stuck

BUSY = "while True: pass"
BUSY_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"


@pytest.fixture
def sleeping() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def wait_for_seconds(process: int, seconds: float) -> None:
    awaited(lambda: processor_seconds(process) >= seconds, f"{seconds} s of work", 60)


def test_a_call_may_take_ten_times_the_longest_and_at_least_half_an_hour() -> None:
    assert next_limit(None) == FIRST_LIMIT == 43_200
    assert [next_limit(seconds) for seconds in (0.0, 180.0, 181.0, 7200.0)] == [1800, 1800, 1810, 72_000]


def test_an_idle_child_is_stuck_after_ten_minutes(sleeping: int) -> None:
    watch = Heartbeat(sleeping)
    assert [watch.complaint() for _ in range(119)] == [None] * 119
    assert watch.complaint() == "was stuck: no processor time used for 600 s"


def test_what_idle_threads_use_is_no_sign_of_life(sleeping: int) -> None:
    """A hundredth of a second every five is less than a second in ten minutes."""
    watch = Heartbeat(sleeping)
    watch.used -= 0.9
    assert watch.complaint() is None
    assert watch.still == 5
    watch.used -= 0.11
    assert watch.complaint() is None
    assert watch.still == 0


def test_the_processor_time_of_descendants_counts() -> None:
    """The parent itself only waits."""
    with subprocess.Popen([sys.executable, "-c", BUSY_CHILD], start_new_session=True) as process:
        try:
            wait_for_seconds(process.pid, 1.0)
            times = psutil.Process(process.pid).cpu_times()
            assert times.user + times.system < 0.9
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert processor_seconds(process.pid) == 0  # it is gone
