"""The exam: what is asked, how it is graded, what is stored, and what a look sees. The engine answers from a table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, SandboxConfig, StudentConfig
from conf.sections.benchmark import ExamPart
from rewards.data.benchmarks import exam_problems
from tasks.evaluation.answering import Examiner
from tasks.evaluation.evaluate import LOOK, evaluate, look
from tasks.evaluation.metrics import exam_figures
from tasks.rollouts.verified import Player
from tasks.tables import EVALUATIONS, read_table
from tests.rewards.datasets import write_rows
from tests.tasks.doubles.exam import SUMS, TableEngine
from tests.tasks.doubles.student import write_student

SANDBOX = SandboxConfig()
FRUIT = {"apples": "#### 4", "pears": "#### 5", "figs": "#### 6"}


def fruit_exam(folder: Path, *names: str, **settings: Any) -> ExamPart:
    """A question for each name, which `FRUIT` answers."""
    rows = [{"question": f"How many {name}?", "answer": FRUIT[name.split()[0]]} for name in names]
    return ExamPart(benchmark="gsm8k", source=write_rows(folder / "test.jsonl", *rows), **settings)


def player(checkpoint: Path, engine: Any, longest: int = 4096) -> Player:
    return Player(checkpoint, StudentConfig(), EngineConfig(max_model_len=longest), engine, 64)


def evaluated(
    folder: Path, student: Path, parts: Sequence[ExamPart], answers: dict[str, str], longest: int = 4096, **options: Any
) -> Any:
    """The evaluations table and the engine."""
    folder.mkdir(parents=True)
    engine = TableEngine(student, answers)
    engine.figures = evaluate.write(
        folder,
        parts=tuple(parts),
        player=player(student, engine, longest),
        sandbox=SANDBOX,
        exams=folder / "exams",
        **options,
    )
    return read_table(folder / "evaluations.parquet", EVALUATIONS), engine


def test_each_part_is_graded_by_its_own_benchmark_in_order(tmp_path: Path, student: Path) -> None:
    sums = SUMS.model_copy(update={"problems": 2})
    truths = {problem.question: problem.truth for problem in exam_problems(sums, SANDBOX)}
    answers = {asked: f"#### {truth}" for asked, truth in truths.items()} | {"apples": "#### 4", "pears": "#### 4"}
    table, _ = evaluated(tmp_path / "exam", student, [fruit_exam(tmp_path, "apples", "pears"), sums], answers)
    assert table.benchmark.tolist() == ["gsm8k", "gsm8k", "arithmetic-1", "arithmetic-1"]
    assert table.verdict.tolist() == ["correct", "wrong", "correct", "correct"]
    assert table.correct.tolist() == [True, False, True, True]
    assert set(table.policy_digest) == {student.name}


def test_a_part_of_the_exam_mixes_its_levels() -> None:
    """In the split's own order the first half of it would be of the first level alone."""
    part = ExamPart(benchmark="arithmetic", levels=("1", "2"), problems=200)
    first = exam_problems(part, SANDBOX)
    assert 50 < sum(problem.level == "1" for problem in first) < 80  # 278 of 868 are
    assert exam_problems(part.model_copy(update={"problems": 20}), SANDBOX) == first[:20]
    whole = exam_problems(part.model_copy(update={"problems": None}), SANDBOX)
    assert (len(whole), whole[:200]) == (868, first)


def test_each_night_asks_the_same_problems_in_an_order_of_its_own() -> None:
    part = ExamPart(benchmark="arithmetic", levels=("1",), problems=50)
    first, again, other = (exam_problems(part, SANDBOX, order) for order in ("1 Monday", "1 Monday", "1 Tuesday"))
    assert first == again != other
    assert {*first} == {*other} == {*exam_problems(part, SANDBOX)}


def test_only_the_first_problems_of_the_first_part_are_asked_in_the_nights_order(tmp_path: Path, student: Path) -> None:
    parts = [ExamPart(benchmark="arithmetic", levels=(level,), problems=4) for level in ("1", "2")]
    table, _ = evaluated(tmp_path / "exam", student, parts, {}, order="today", first=3)
    asked = [*exam_problems(parts[0], SANDBOX, "today")[:3], *exam_problems(parts[1], SANDBOX, "today")]
    assert table.problem_id.tolist() == [problem.problem_id for problem in asked]


def test_only_what_is_not_stored_is_asked(tmp_path: Path, student: Path) -> None:
    """Neither another order nor another number of problems asks any of them again; another checkpoint does."""
    problems = exam_problems(SUMS.model_copy(update={"problems": 5}), SANDBOX)
    first, engine = Examiner(SANDBOX, tmp_path / "exams"), TableEngine(student, {})
    rows = first.ask(SUMS, problems[:3], player(student, engine))
    assert (first.answered, engine.calls, first.seconds > 0) == (3, 1, True)
    again, idle = Examiner(SANDBOX, tmp_path / "exams"), TableEngine(student, {})
    assert again.ask(SUMS, problems[2::-1], player(student, idle)) == rows[::-1]
    assert (again.answered, idle.calls, again.seconds) == (0, 0, 0.0)
    more = again.ask(SUMS, problems, player(student, idle))
    assert (again.answered, len(idle.asked), more[:3]) == (2, 2, rows)
    other = Examiner(SANDBOX, tmp_path / "exams")
    other.ask(SUMS, problems, player(write_student(tmp_path / "other"), engine))
    assert other.answered == 5


def looked(folder: Path, candidate: Path, engine: TableEngine, exams: Path, champion: Path, problems: int) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    part = ExamPart(benchmark="arithmetic", levels=("1",), problems=20)
    figures = look.write(
        folder,
        part=part,
        order="today",
        problems=problems,
        looks=(10, 20),
        alpha=0.025,
        champion=player(champion, engine),
        candidate=player(candidate, engine),
        sandbox=SANDBOX,
        exams=exams,
    )
    return json.loads((folder / LOOK).read_text()), figures


def test_a_look_says_what_both_answered_and_asks_for_nothing_twice(tmp_path: Path, student: Path) -> None:
    """Of 20 problems the candidate alone solves the first eight in the night's order: p = 1/256."""
    candidate = write_student(tmp_path / "candidate")
    asked = exam_problems(ExamPart(benchmark="arithmetic", levels=("1",), problems=20), SANDBOX, "today")
    engine: Any = TableEngine(student, {})
    answers = {problem.question: f"#### {problem.truth}" for problem in asked[:8]}
    original = engine.call

    def call(function: Any, checkpoint: Path, *arguments: Any, **options: Any) -> Any:
        engine.answers = answers if checkpoint == candidate else {}
        return original(function, checkpoint, *arguments, **options)

    engine.call = call
    arguments = (candidate, engine, tmp_path / "exams", student)
    found, figures = looked(tmp_path / "look-1", *arguments, problems=10)
    assert {name: found[name] for name in ("problems", "gained", "lost", "difference", "p_value")} == {
        "problems": 10,
        "gained": 8,
        "lost": 0,
        "difference": 0.8,
        "p_value": 1 / 256,
    }
    assert (found["level"], found["verdict"]) == (0.025 / 4, "better")
    assert (figures["answered"], engine.calls) == (20, 2)
    resumed, nothing = looked(tmp_path / "look-1", *arguments, problems=10)
    assert (resumed, nothing, engine.calls) == (found, {"answered": 0.0, "seconds_answering": 0.0}, 2)
    further, figures = looked(tmp_path / "look-2", *arguments, problems=20)
    assert (further["gained"], further["difference"], figures["answered"]) == (8, 0.4, 20)
    assert further["level"] == pytest.approx(0.025 * 3 / 4)
    behind, _ = looked(tmp_path / "behind", student, engine, tmp_path / "exams", candidate, problems=20)
    assert (behind["gained"], behind["lost"], behind["verdict"]) == (0, 8, "not ahead")


def test_sampled_answers_are_kept_apart_from_the_greedy_ones_that_decide(tmp_path: Path, student: Path) -> None:
    part = fruit_exam(tmp_path, "apples", "pears", samples=3)
    table, engine = evaluated(tmp_path / "exam", student, [part], FRUIT | {"pears": "#### 4"}, sampled=True)
    assert engine.calls == 2
    assert table["sample"].tolist() == [0, 0]
    sampled = read_table(tmp_path / "exam" / "samples.parquet", EVALUATIONS)
    assert sampled["problem_id"].tolist() == ["gsm8k/test/0"] * 3 + ["gsm8k/test/1"] * 3
    assert sampled["sample"].tolist() == [0, 1, 2] * 2
    assert sampled["verdict"].tolist() == ["correct", "no_answer", "correct", "wrong", "no_answer", "wrong"]
    figures = exam_figures(tmp_path / "exam")["gsm8k"]
    assert (figures["sampled"], figures["accuracy"]) == (3, 0.5)
    assert figures["pass_at"] == {1: pytest.approx(1 / 3), 2: 0.5, 3: 0.5}  # (2/3 + 0) / 2; then certain of the first


def test_a_question_that_is_too_long_counts_as_not_answered(tmp_path: Path, student: Path) -> None:
    part = fruit_exam(tmp_path, "apples", "pears" + " and plums" * 100, "figs", samples=2)
    table, engine = evaluated(tmp_path / "exam", student, [part], FRUIT, longest=400, sampled=True)
    assert len(engine.asked) == 2
    assert table.verdict.tolist() == ["correct", "no_answer", "correct"]
    assert table.finish_reason.tolist() == ["stop", "length", "stop"]
    assert set(table.policy_digest) == {student.name}
    sampled = read_table(tmp_path / "exam" / "samples.parquet", EVALUATIONS)
    assert sampled["sample"].tolist() == [0, 1] * 3
    assert sampled.finish_reason.tolist() == ["stop"] * 2 + ["length"] * 2 + ["stop"] * 2
    assert evaluated(tmp_path / "longer", student, [part], FRUIT)[0].correct.all()
