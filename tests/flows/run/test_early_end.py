"""Nights whose rounds end early, because time is short or a child process hangs."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from flows.run import budget
from flows.run.history import read_round_metrics
from models.engine.environment import trainer_environment
from tasks.monitoring.incidents import EarlyEnd, ended_early, incidents
from tasks.training import trainer_process
from tasks.workers.worker import HoursOverError, Worker, WorkerDiedError
from tests.flows.rounds import SCRIPT, School, ScriptedEngine, SlowEngine, digest
from tests.tasks.doubles.workers import FailingWorker, InProcessWorker


def sentences(folder: Path) -> list[str]:
    return [line.split(" ", 1)[1] for line in incidents(folder)]


TWICE = ("stages=[distill, {grpo: 1}, distill, {grpo: 1}]", "grpo.refills=0")


@pytest.mark.parametrize(
    ("name", "settings", "steps", "why"),
    [
        ("short", (), 1, "1 of 3 rounds: round 2 needs about "),
        pytest.param("hurried", TWICE, 2, "1 of 2 rounds: the lesson distill-2 needs about ", marks=pytest.mark.slow),
    ],
)
def test_a_night_without_time_for_the_next_step_ends_with_what_it_has(
    school: School, clock: list[float], name: str, settings: tuple[str, ...], steps: int, why: str
) -> None:
    """After round 1 a second less is left than exam (540 s) and report (60 s) need."""
    engine = SlowEngine(school.student, clock, call=1, seconds=3600 - 599)
    folder, candidate = school.study(name, engine, *settings, "budget_minutes=60")
    assert len(engine.seeds) == 1
    assert candidate.name == digest(folder, "round-01/checkpoint")
    early = ended_early(folder)
    assert (early.rounds, early.steps, early.died) == (1, steps, False)
    assert early.why.startswith(f"Training stopped after {why}")
    assert not (folder / "round-02").exists()
    again = ScriptedEngine(school.student, [])
    assert school.study(name, again, *settings)[1] == candidate  # and stays ended when there is time
    assert sentences(folder) == [early.why]


class SlowTrainer(InProcessWorker):
    """A trainer with a time limit, in whose updates the clock jumps (see the fixture `clock`)."""

    def __init__(self, worker: InProcessWorker, clock: list[float], seconds: float) -> None:
        super().__init__()
        self.worker, self.clock, self.seconds, self.until = worker, clock, seconds, math.inf

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if budget.time.time() >= self.until:
            raise HoursOverError(f"time ran out before {function.__name__} began")
        answer = self.worker.call(function, *arguments, **options)
        self.clock[0] += self.seconds if function is trainer_process.update else 0.0
        return answer


def test_an_update_that_ends_as_the_rounds_time_does_is_saved(
    school: School, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exam (540 s) and report (60 s) have ten seconds less than they need."""
    monkeypatch.setattr(school, "trainer", SlowTrainer(school.trainer, clock, 3600 - 590))
    folder, candidate = school.study("last", ScriptedEngine(school.student, SCRIPT), "budget_minutes=60")
    assert candidate.name == digest(folder, "round-01/checkpoint")
    assert ended_early(folder).rounds == 1


def test_committed_rounds_need_no_time(school: School, clock: list[float]) -> None:
    _, candidate = school.study("done", ScriptedEngine(school.student, SCRIPT), "grpo.rounds=1")
    engine = SlowEngine(school.student, clock, call=0, seconds=0)
    folder, same = school.study("done", engine, "grpo.rounds=1", "budget_minutes=0.001")
    assert same == candidate
    assert engine.seeds == []
    assert ended_early(folder) is None


def test_a_resumed_round_keeps_the_rate_that_was_written_down(school: School) -> None:
    """It falls to 0 over two rounds; with hours another start might come to another number of them."""
    folder, _ = school.study("rated", ScriptedEngine(school.student, SCRIPT), "grpo.rounds=2")
    assert [figures["rate_factor"] for figures in read_round_metrics(folder)] == [1.0, 0.5]
    (folder / "round-02" / "checkpoint" / "manifest.json").unlink()
    (folder / "pace" / "round-02.json").write_text('{"rate_factor": 0.25}')
    school.study("rated", ScriptedEngine(school.student, []), "grpo.rounds=2")
    assert [figures["rate_factor"] for figures in read_round_metrics(folder)] == [1.0, 0.25]


@pytest.mark.parametrize("over", [HoursOverError("time ran out"), WorkerDiedError("the trainer process died")])
def test_a_lesson_that_takes_too_long_or_too_much_memory_is_left_out(
    school: School, monkeypatch: pytest.MonkeyPatch, over: Exception
) -> None:
    """A book in the journal, say, would otherwise fail every night."""
    engine, settings = ScriptedEngine(school.student, []), ("stages=[distill, lessons, grpo]", "distill.steps=2")
    name = type(over).__name__
    with monkeypatch.context() as patch:
        patch.setattr(school, "trainer", FailingWorker(over))
        folder, candidate = school.study(name, engine, *settings)
    why = f"Training stopped during the lessons, before any round: {over}."
    assert ended_early(folder) == EarlyEnd(0, why, 0, died=isinstance(over, WorkerDiedError))
    assert sentences(folder) == [why]
    assert candidate.name == school.student.name
    assert not list(folder.glob("round-*")) + list(folder.glob("distill/manifest.json")) + list(folder.glob("lessons"))
    assert school.study(name, engine, *settings)[1] == candidate


class StuckTrainer(Worker):
    """A trainer whose child sleeps through every update after the first ones."""

    updates = 0

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
        if function is trainer_process.update:
            self.updates += 1
            if self.updates > 1:
                return super().submit(time.sleep, 600)
        return super().submit(function, *arguments, **options)


@pytest.fixture
def stuck(school: School, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    losses: list[str] = []
    trainer = StuckTrainer("trainer", trainer_environment(), on_loss=losses.append, quiet=4.0)
    monkeypatch.setattr(school, "trainer", trainer)
    yield losses
    trainer.end(grace=0)


@pytest.mark.full  # three trainers are started: 45 s
def test_a_round_whose_trainer_hangs_three_times_is_left_out(school: School, stuck: list[str]) -> None:
    engine = ScriptedEngine(school.student, SCRIPT)
    folder, candidate = school.study("stuck", engine)
    assert len(stuck) == 3
    assert {loss.split(" for ")[0] for loss in stuck} == {"the trainer process was stuck: no processor time used"}
    assert candidate.name == digest(folder, "round-01/checkpoint")
    early = ended_early(folder)
    assert early.rounds == len(read_round_metrics(folder)) == 1
    assert early.why.startswith("Training stopped after 1 of 3 rounds: the trainer process was stuck")
    assert early.died
    assert (folder / "round-02" / "sample" / "manifest.json").exists()  # the rollouts are not lost
