"""The exam: what is asked, who judges it, and what cannot be asked. The engine answers from a table."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, ExamPart, SandboxConfig, StudentConfig
from models.policy import load_tokenizer
from models.rollout import Rollout
from rewards import benchmarks
from rewards.gsm8k import Gsm8k
from rewards.verifier import Attempt, Score
from tasks import engine as in_engine
from tasks.evaluate import evaluate, exam_problems
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, read_table
from tests.tasks.tiny_student import write_student

SANDBOX = SandboxConfig()


class TableEngine:
    """Answers a prompt by the words in it, and remembers what it was asked."""

    def __init__(self, student: Path, answers: dict[str, str]) -> None:
        self.tokenizer: Any = load_tokenizer(student)
        self.answers = answers
        self.asked: list[str] = []
        self.calls = 0

    def call(
        self,
        function: Callable[..., Any],
        checkpoint: Path,
        config: EngineConfig,
        prompts: Sequence[list[int]],
        size: int,
        **options: Any,
    ) -> list[list[Rollout]]:
        assert function is in_engine.sample
        self.calls += 1
        assert (size, options["temperature"]) == (1, 0.0)
        self.asked = [self.tokenizer.decode(prompt) for prompt in prompts]
        texts = [next((text for word, text in self.answers.items() if word in asked), "") for asked in self.asked]
        return [
            [Rollout("", 0, 0, prompt, [1] * len(text), [], [], "stop", text, checkpoint.name)]
            for prompt, text in zip(prompts, texts, strict=True)
        ]


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_student(tmp_path_factory.mktemp("students") / "tiny")


def gsm8k(folder: Path, rows: Sequence[tuple[str, str]]) -> str:
    folder.mkdir()
    lines = [json.dumps({"question": question, "answer": answer}) for question, answer in rows]
    (folder / "test.jsonl").write_text("\n".join(lines))
    return str(folder)


def sit(
    folder: Path,
    student: Path,
    parts: Sequence[ExamPart],
    answers: dict[str, str],
    longest: int = 4096,
    sat: Mapping[Path, Artifact] | None = None,
) -> Any:
    folder.mkdir(parents=True)
    engine = TableEngine(student, answers)
    evaluate.write(
        folder,
        parts=tuple(parts),
        checkpoint=student,
        student=StudentConfig(),
        config=EngineConfig(max_model_len=longest),
        sandbox=SANDBOX,
        max_completion_tokens=64,
        engine=engine,
        sat=sat or {},
    )
    return read_table(folder / "evaluations.parquet", EVALUATIONS), engine


def test_each_part_is_judged_by_its_own_benchmark_in_order(tmp_path: Path, student: Path) -> None:
    source = gsm8k(tmp_path / "data", [("How many apples?", "#### 4"), ("How many pears?", "#### 5")])
    plus = ExamPart(benchmark="arithmetic", levels=("1",), problems=2)
    truths = {problem.question: problem.truth for _, problem in exam_problems(plus, SANDBOX)}
    answers = {asked: f"#### {truth}" for asked, truth in truths.items()} | {"apples": "#### 4", "pears": "#### 4"}
    table, _ = sit(tmp_path / "exam", student, [ExamPart(benchmark="gsm8k", source=source), plus], answers)
    assert table.benchmark.tolist() == ["gsm8k", "gsm8k", "arithmetic-1", "arithmetic-1"]
    assert table.verdict.tolist() == ["correct", "wrong", "correct", "correct"]
    assert table.correct.tolist() == [True, False, True, True]
    assert set(table.policy_digest) == {student.name}


def test_nobody_sits_the_same_exam_twice(tmp_path: Path, student: Path) -> None:
    part = ExamPart(benchmark="arithmetic", levels=("1",), problems=3)
    first, _ = sit(tmp_path / "champion", student, [part], {})
    sat = {student: Artifact(folder=tmp_path / "champion", digest="")}
    again, engine = sit(tmp_path / "distilled", student, [part], {}, sat=sat)
    assert again.equals(first)
    assert engine.calls == 0
    assert (tmp_path / "distilled" / "excluded.json").read_text() == (tmp_path / "champion/excluded.json").read_text()
    assert sit(tmp_path / "other", student, [part], {}, sat={tmp_path: sat[student]})[1].calls == 1


def test_a_benchmark_judges_all_of_its_answers_at_once(
    tmp_path: Path, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To begin may cost it a second: a sandbox, or a worker that knows algebra."""
    rows = [(f"How many {thing}?", "#### 4") for thing in ("apples", "pears", "plums", "figs")]
    calls: list[int] = []
    judge = Gsm8k.score

    def counted(self: Gsm8k, attempts: Sequence[Attempt]) -> list[Score]:
        calls.append(len(attempts))
        return judge(self, attempts)

    monkeypatch.setattr(Gsm8k, "score", counted)
    sit(tmp_path / "exam", student, [ExamPart(benchmark="gsm8k", source=gsm8k(tmp_path / "data", rows))], {})
    assert calls == [4]


def test_a_question_that_is_too_long_counts_as_not_answered(tmp_path: Path, student: Path) -> None:
    rows = [
        ("How many apples?", "#### 4"),
        ("How many pears? " + "Think. " * 100, "#### 5"),
        ("How many figs?", "#### 6"),
    ]
    part = ExamPart(benchmark="gsm8k", source=gsm8k(tmp_path / "data", rows))
    answers = {"apples": "#### 4", "pears": "#### 5", "figs": "#### 6"}
    table, engine = sit(tmp_path / "exam", student, [part], answers, longest=400)
    assert len(engine.asked) == 2
    assert table.verdict.tolist() == ["correct", "no_answer", "correct"]
    assert table.correct.tolist() == [True, False, True]
    assert table.finish_reason.tolist() == ["stop", "length", "stop"]
    assert set(table.policy_digest) == {student.name}
    assert sit(tmp_path / "longer", student, [part], answers)[0].correct.all()


def test_the_longest_question_that_can_be_asked(tmp_path: Path, student: Path) -> None:
    """The engine refuses a prompt that leaves no room for one token."""
    part = ExamPart(benchmark="gsm8k", source=gsm8k(tmp_path / "data", [("How many apples?", "#### 4")]))
    tokens = len(sit(tmp_path / "exam", student, [part], {})[1].asked[0])
    assert len(sit(tmp_path / "one", student, [part], {}, longest=tokens + 1)[1].asked) == 1
    assert len(sit(tmp_path / "none", student, [part], {}, longest=tokens)[1].asked) == 0


def test_problems_that_were_left_out_are_noted(tmp_path: Path, student: Path) -> None:
    source = gsm8k(tmp_path / "data", [("How many apples?", "four"), ("How many pears?", "#### 5")])
    part = ExamPart(benchmark="gsm8k", source=source)
    table, _ = sit(tmp_path / "exam", student, [part, ExamPart(benchmark="arithmetic", problems=1)], {})
    assert len(table) == 2
    noted = json.loads((tmp_path / "exam" / "excluded.json").read_text())
    assert noted == {"gsm8k": ["gsm8k/test/0"], "arithmetic": []}
    assert benchmarks.excluded(exam_problems(part, SANDBOX)[0][0], "test") == ["gsm8k/test/0"]
