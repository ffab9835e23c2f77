"""A child that hangs is ended and said so, and the next call has a new one: real children that are really stuck."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.stage import stage
from tasks.workers import HoursOverError, Worker, WorkerDiedError, WorkerHungError, working_on
from tests.tasks.doubles import child_calls
from tests.tasks.doubles.processes import is_running

Losses = list[str]


@pytest.fixture
def losses() -> Losses:
    return []


@pytest.fixture
def worker(losses: Losses, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker("test", log=tmp_path / "test.log", on_loss=losses.append, quiet=2.0)
    worker.call(child_calls.count)  # it is up: from now on it does only what it is told
    yield worker
    worker.end(grace=0)


@pytest.mark.parametrize("how", ["stopped", "sleeping"])
def test_a_child_that_shows_no_sign_of_life(worker: Worker, losses: Losses, tmp_path: Path, how: str) -> None:
    pid, _ = worker.call(child_calls.count)
    if how == "stopped":
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(WorkerHungError) as caught, working_on("sample"):
        worker.call(child_calls.sleep, 600)
    what = "the test process was stuck: no processor time used for 2 s; it was ended at sample · sleep"
    assert str(caught.value) == f"{what}; its log: {tmp_path}/test.log"
    assert losses == [what]
    assert isinstance(caught.value, WorkerDiedError)  # so a stage is tried again
    assert not is_running(pid)
    assert worker.call(child_calls.count)[1] == 1


def test_a_child_that_works_is_left_alone(worker: Worker, losses: Losses) -> None:
    assert worker.call(child_calls.spin, 3.0) == 3.0  # longer than it may be quiet
    assert losses == []


def test_a_call_that_takes_far_longer_than_any_before(
    worker: Worker, losses: Losses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.workers.LEAST_LIMIT", 1.0)
    with working_on("update"):
        worker.call(child_calls.spin, 0.0)
    with working_on("distill"):  # which has no history
        assert worker.call(child_calls.spin, 2.0) == 2.0
    with (
        pytest.raises(WorkerHungError, match="not through after [0-9]+ s; it was ended at update · spin"),
        working_on("update"),
    ):
        worker.call(child_calls.spin, 600)
    assert len(losses) == 1


def test_a_first_call_that_takes_far_longer_than_its_stage_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.workers.LEAST_LIMIT", 1.0)
    worker = Worker("test", quiet=2.0, usual={"sample": 0.01})
    with pytest.raises(WorkerHungError, match="not through after [0-9]+ s"), working_on("sample"):
        worker.call(child_calls.spin, 600)
    worker.end(grace=0)


def test_a_short_call_does_not_make_a_later_long_one_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of the longer of both: what its stage usually takes, and the longest call so far."""
    monkeypatch.setattr("tasks.workers.LEAST_LIMIT", 0.1)
    worker = Worker("test", quiet=2.0, usual={"evaluate": 60.0})
    with working_on("evaluate · arithmetic · 3"):
        worker.call(child_calls.spin, 0.0)
        assert worker.call(child_calls.spin, 2.0) == 2.0
    worker.end(grace=0)


def test_no_call_is_waited_for_longer_than_the_nights_hours(worker: Worker, losses: Losses) -> None:
    pid, _ = worker.call(child_calls.count)
    worker.until = time.time() + 0.5
    with pytest.raises(HoursOverError, match="the night's hours were over before spin was done"):
        worker.call(child_calls.spin, 600)
    assert not is_running(pid)
    with pytest.raises(HoursOverError, match="the night's hours were over before count began"):
        worker.call(child_calls.count)
    assert not worker.running
    assert losses == []  # the child did nothing wrong
    worker.until = time.time() + 60
    assert worker.call(child_calls.count)[1] == 1


def test_a_child_that_dies_is_an_incident_and_one_that_is_ended_is_none(worker: Worker, losses: Losses) -> None:
    with pytest.raises(WorkerDiedError):
        worker.call(child_calls.die)
    assert losses == ["the test process died (killed, out of memory, or crashed) at die"]
    worker.call(child_calls.count)
    worker.end(grace=0)
    assert len(losses) == 1


@pytest.mark.usefixtures("prefect_server")
def test_a_stage_whose_child_hung_is_tried_again(worker: Worker, losses: Losses, tmp_path: Path) -> None:
    @stage(retries=2, resources=("worker",))
    def ask(folder: Path, *, worker: Worker) -> None:
        """Asks a child that hangs the first time."""
        (folder / "answer.txt").write_text(worker.call(child_calls.hang_once, tmp_path / "note"))

    asked = ask(tmp_path, "ask", worker=worker)
    assert (asked.folder / "answer.txt").read_text() == "an answer"
    assert losses == ["the test process was stuck: no processor time used for 2 s; it was ended at ask · hang_once"]


def test_a_stopped_child_does_not_keep_a_night_from_closing(worker: Worker) -> None:
    pid, _ = worker.call(child_calls.count)
    os.kill(pid, signal.SIGSTOP)
    worker.end(grace=0.2)
    assert not is_running(pid)
