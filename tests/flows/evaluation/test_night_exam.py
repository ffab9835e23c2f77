"""The exam of a night: it ends once it is decided, and examines the guards only of a candidate that is better."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.schema import SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.storage.home import Home
from flows.evaluation.night_exam import SLACK, Exam, Examined, decide_night
from flows.run.budget import Division
from flows.run.context import Night
from flows.run.dates import Hours
from rewards.data.benchmarks import exam_problems
from tasks.evaluation.english import FILE
from tasks.monitoring.incidents import incidents
from tasks.tables import EVALUATIONS, read_table
from tasks.workers import engine_process
from tests.tasks.doubles.exam import TableEngine
from tests.tasks.doubles.picks import ranking
from tests.tasks.doubles.student import write_student

EXAM = (
    "exam={target: {benchmark: arithmetic, levels: ['1']}, english_margin: 9, "
    "guards: [{benchmark: arithmetic, levels: ['2'], problems: 30, margin: 0.2}]}"
)


class Class(TableEngine):
    """Models that solve a share of the problems, in the order in which they are asked; remembers who was asked."""

    def __init__(self, student: Path, solves: dict[str, float]) -> None:
        parts = (ExamPart(benchmark="arithmetic", levels=(level,)) for level in "12")
        self.truths = [(each.question, each.truth) for part in parts for each in exam_problems(part, SandboxConfig())]
        super().__init__(student, {})
        self.solves = solves
        self.examined: list[tuple[str, int]] = []
        self.read: list[str] = []

    def call(self, function: Any, checkpoint: Path, config: Any, prompts: Any, size: int = 1, **options: Any) -> Any:
        if function is engine_process.logprobs:
            self.read.append(checkpoint.name)
            return [[-3.0] for _ in prompts]
        self.examined.append((checkpoint.name, len(prompts)))
        asked = [self.tokenizer.decode(prompt) for prompt in prompts]
        right = [next(pair for pair in self.truths if pair[0] in text) for text in asked]
        right = right[: round(self.solves[checkpoint.name] * len(right))]
        self.answers = {question: f"#### {truth}" for question, truth in right}
        return super().call(function, checkpoint, config, prompts, size, **options)


Sit = Callable[..., tuple[Examined, Class, Night]]


@pytest.fixture
def sit(tmp_path: Path, prefect_server: None) -> Iterator[Sit]:
    """Sits an exam of at most 150 problems, of which the champion solves three in ten, and the candidate a share."""
    home, nights = Home(tmp_path), list[Night]()
    champion, candidate, first = (write_student(home.checkpoints / name) for name in ("champion", "candidate", "first"))

    def examine(solves: float, *, picks: bool = False, hours: Hours | None = None) -> tuple[Examined, Class, Night]:
        config = load_night(STARTER, [EXAM, "engine.max_model_len=4096", "budget_minutes=null"])
        night = Night(home, "2026-11-20", config)
        nights.append(night)
        engine = Class(champion, {"champion": 0.3, "candidate": solves, "first": 0.1})
        night.engine.end()
        night.engine = engine
        night.hours = hours or night.hours
        return Exam(night, champion, first, Division(150), 0.025).sit(candidate, picks), engine, night

    yield examine
    for night in nights:
        night.trainer.end()


def last(found: Examined) -> Any:
    """What the last look saw."""
    return found.looks[-1].read_json("look.json")


def asked(found: Examined) -> dict[str, dict[str, int]]:
    """How many problems of each part stand in the exam of each role."""
    tables = {role: read_table(exam.folder / "evaluations.parquet", EVALUATIONS) for role, exam in found.exams.items()}
    return {role: table.benchmark.value_counts().to_dict() for role, table in tables.items()}


BOTH = {"arithmetic-1": 100, "arithmetic-2": 30}


def test_it_ends_where_the_candidate_is_better_and_then_examines_the_guards(sit: Sit) -> None:
    """Against the champion and the first student; what a look asked is not asked again."""
    found, engine, _ = sit(1.0)
    assert (len(found.looks), last(found)["verdict"], last(found)["problems"]) == (1, "better", 100)
    assert asked(found) == {"champion": BOTH, "candidate": BOTH, "first": {"arithmetic-2": 30}}
    guards = [("champion", 30), ("candidate", 30), ("first", 30)]
    assert engine.examined == [("champion", 100), ("candidate", 100), *guards]
    assert engine.read == ["champion", "candidate", "first"]
    again, idle, _ = sit(1.0)
    assert (again, idle.examined, idle.read) == (found, [], [])  # a resumed night


@pytest.mark.parametrize(("candidate", "verdict", "read"), [(0.32, "undecided", True), (0.2, "not ahead", False)])
def test_one_that_is_not_better_is_asked_to_the_end_and_no_guard(
    sit: Sit, candidate: float, verdict: str, read: bool
) -> None:
    """English is measured only of one that is ahead: the next night may go on from it."""
    found, engine, _ = sit(candidate)
    assert [look.read_json("look.json")["problems"] for look in found.looks] == [100, 150]
    assert (last(found)["verdict"], last(found)["problems"]) == (verdict, 150)
    assert asked(found) == {role: {"arithmetic-1": 150} for role in ("champion", "candidate")}
    assert engine.examined == [("champion", 100), ("candidate", 100), ("champion", 50), ("candidate", 50)]
    assert (found.exams["candidate"].folder / FILE).exists() is read


def test_where_the_picks_decide_the_guards_are_examined_too(sit: Sit) -> None:
    found, _, _ = sit(0.3, picks=True)
    assert asked(found)["first"] == {"arithmetic-2": 30}
    assert asked(found)["candidate"] == {"arithmetic-1": 150, "arithmetic-2": 30}


@pytest.mark.parametrize(("conversations", "alpha", "decide"), [(6, 0.025, False), (7, 0.0125, True)])
def test_picks_too_few_for_half_of_alpha_do_not_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conversations: int, alpha: float, decide: bool
) -> None:
    """Six conversations have at best p = 0.016, which is below the whole of alpha only."""
    picks = tuple(ranking(tmp_path / who, [who == "candidate"] * conversations) for who in ("champion", "candidate"))
    night: Any = SimpleNamespace(config=load_night(STARTER), run=lambda stage, path, **arguments: arguments)
    monkeypatch.setattr(Exam, "sit", lambda exam, candidate, picks_passed: Examined((), {"picks_passed": picks_passed}))
    students = {role: tmp_path / role for role in ("champion", "start", "distilled", "candidate")}
    found, exams = decide_night(night, students, None, Division(150), picks, {}, 0, ())
    assert (found["alpha"], exams["picks_passed"]) == (alpha, decide)
    assert (found["champion_picks"], found["candidate_picks"]) == (picks if decide else (None, None))


def test_the_hours_end_it_but_not_before_the_first_look(sit: Sit) -> None:
    over = Hours(time.time() - 3600, "the deadline (06:30)")
    found, _, night = sit(0.32, hours=over)
    assert (len(found.looks), last(found)["verdict"]) == (1, "undecided")
    assert incidents(night.folder)[-1].endswith("The exam ended after 100 problems: time ran out.")


@pytest.mark.parametrize(("seconds", "fits"), [(400, False), (600, True)])
def test_stored_answers_take_no_time(sit: Sit, seconds: float, fits: bool) -> None:
    """At 10 s an answer, 50 problems take 500 s if the champion has answered them, and otherwise 1,000 s."""
    _, _, night = sit(0.32)
    shutil.rmtree(night.folder / "exam")
    night.hours = Hours(time.time() + seconds - SLACK, "the deadline (06:30)")
    looked: Any = SimpleNamespace(figure={"answered": 100.0, "seconds_answering": 1000.0}.get)
    champion, another = (night.home.checkpoints / name for name in ("champion", "first"))
    assert Exam(night, champion, None, Division(150), 0.025)._fits([looked], 150, another) is fits


def test_a_night_resumed_after_its_hours_keeps_the_looks_that_it_had(sit: Sit) -> None:
    whole, _, _ = sit(0.32)
    assert sit(0.32, hours=Hours(time.time() - 3600, "the deadline (06:30)"))[0] == whole
