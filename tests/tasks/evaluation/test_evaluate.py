"""The exam: what is asked, how it is graded, and what is cached. The engine answers from a table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, SandboxConfig, StudentConfig
from conf.sections.benchmark import ExamPart
from tasks.evaluation.evaluate import evaluate, exam_problems
from tasks.evaluation.metrics import exam_figures
from tasks.tables import EVALUATIONS, read_table
from tests.tasks.doubles.exam import TableEngine, gsm8k
from tests.tasks.doubles.student import write_student

SANDBOX = SandboxConfig()
SUMS = ExamPart(benchmark="arithmetic", levels=("1",), problems=3)
FRUIT = {"apples": "#### 4", "pears": "#### 5", "figs": "#### 6"}


def fruit_exam(folder: Path, *names: str, **settings: Any) -> ExamPart:
    """A question for each name, which `FRUIT` answers."""
    source = gsm8k(folder / "data", [(f"How many {name}?", FRUIT[name.split()[0]]) for name in names])
    return ExamPart(benchmark="gsm8k", source=source, **settings)


def evaluated(
    folder: Path,
    student: Path,
    parts: Sequence[ExamPart],
    answers: dict[str, str],
    longest: int = 4096,
    exams: Path | None = None,
) -> Any:
    """The evaluations table and the engine."""
    folder.mkdir(parents=True)
    engine = TableEngine(student, answers)
    engine.figures = evaluate.write(
        folder,
        parts=tuple(parts),
        checkpoint=student,
        student=StudentConfig(),
        config=EngineConfig(max_model_len=longest),
        sandbox=SANDBOX,
        max_completion_tokens=64,
        engine=engine,
        exams=exams or folder / "exams",
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
    first, following = (exam_problems(each, SANDBOX) for each in (part, part.following(200)))
    assert len({problem.problem_id for problem in [*first, *following]}) == 400
    assert 80 < sum(problem.level == "1" for problem in first) < 120
    assert exam_problems(part.model_copy(update={"problems": 20}), SANDBOX) == first[:20]


def test_a_cached_exam_is_reused(tmp_path: Path, student: Path) -> None:
    first, engine = evaluated(tmp_path / "champion", student, [SUMS], {}, exams=tmp_path / "exams")
    again, idle = evaluated(tmp_path / "distilled", student, [SUMS], {}, exams=tmp_path / "exams")
    assert again.equals(first)
    assert (engine.calls, idle.calls) == (1, 0)
    assert contents(tmp_path / "distilled") == contents(tmp_path / "champion")
    assert idle.figures == engine.figures  # the seconds that answering took
    assert engine.figures["seconds_sat"] > 0
    other = write_student(tmp_path / "other")
    assert evaluated(tmp_path / "others", other, [SUMS], {}, exams=tmp_path / "exams")[1].calls == 1


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_a_new_part_is_evaluated_alone(tmp_path: Path, student: Path) -> None:
    """An exam that is interrupted, or gets one part more, keeps what was answered."""
    parts = [ExamPart(benchmark="arithmetic", levels=(level,), problems=2) for level in ("1", "2", "3")]
    evaluated(tmp_path / "first", student, parts[:2], {}, exams=tmp_path / "exams")
    table, engine = evaluated(tmp_path / "second", student, parts, {}, exams=tmp_path / "exams")
    assert (len(table), engine.calls, len(engine.asked)) == (6, 1, 2)
    assert table.equals(evaluated(tmp_path / "apart", student, parts, {})[0])


def test_sampled_answers_are_kept_apart_from_the_greedy_ones_that_decide(tmp_path: Path, student: Path) -> None:
    part = fruit_exam(tmp_path, "apples", "pears", samples=3, temperature=0.8)
    table, engine = evaluated(tmp_path / "exam", student, [part], FRUIT | {"pears": "#### 4"})
    assert engine.calls == 2
    assert table["sample"].tolist() == [0, 0]
    sampled = read_table(tmp_path / "exam" / "samples.parquet", EVALUATIONS)
    assert sampled["problem_id"].tolist() == ["gsm8k/test/0"] * 3 + ["gsm8k/test/1"] * 3
    assert sampled["sample"].tolist() == [0, 1, 2] * 2
    assert sampled["verdict"].tolist() == ["correct", "no_answer", "correct", "wrong", "no_answer", "wrong"]
    figures = exam_figures(tmp_path / "exam")["gsm8k"]
    assert (figures.sampled, figures.accuracy.accuracy) == (3, 0.5)
    assert figures.pass_at == {1: pytest.approx(1 / 3), 2: 0.5, 3: 0.5}  # (2/3 + 0) / 2; then certain of the first


def test_a_question_that_is_too_long_counts_as_not_answered(tmp_path: Path, student: Path) -> None:
    part = fruit_exam(tmp_path, "apples", "pears" + " and plums" * 100, "figs", samples=2, temperature=0.8)
    table, engine = evaluated(tmp_path / "exam", student, [part], FRUIT, longest=400)
    assert len(engine.asked) == 2
    assert table.verdict.tolist() == ["correct", "no_answer", "correct"]
    assert table.finish_reason.tolist() == ["stop", "length", "stop"]
    assert set(table.policy_digest) == {student.name}
    sampled = read_table(tmp_path / "exam" / "samples.parquet", EVALUATIONS)
    assert sampled["sample"].tolist() == [0, 1] * 3
    assert sampled.finish_reason.tolist() == ["stop"] * 2 + ["length"] * 2 + ["stop"] * 2
    assert evaluated(tmp_path / "longer", student, [part], FRUIT)[0].correct.all()


def test_problems_that_a_benchmark_left_out_are_noted(tmp_path: Path, student: Path) -> None:
    source = gsm8k(tmp_path / "data", [("How many apples?", "four"), ("How many pears?", "#### 5")])
    parts = [ExamPart(benchmark="gsm8k", source=source), ExamPart(benchmark="arithmetic", problems=1)]
    table, _ = evaluated(tmp_path / "exam", student, parts, {})
    assert len(table) == 2
    assert json.loads((tmp_path / "exam" / "excluded.json").read_text()) == {
        "gsm8k": ["gsm8k/test/0"],
        "arithmetic": [],
    }
