"""The exam: what is asked, who judges it, and what cannot be asked. The engine answers from a table."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, SandboxConfig, StudentConfig
from conf.sections.benchmark import ExamPart
from models.hf.loading import load_tokenizer
from models.rollout import Rollout
from rewards import benchmarks
from rewards.arithmetic import Arithmetic
from rewards.gsm8k import Gsm8k
from rewards.verifier import Attempt, Score
from tasks.evaluation.evaluate import evaluate, exam_problems
from tasks.evaluation.metrics import exam_figures
from tasks.rollouts import engine_process as in_engine
from tasks.tables import EVALUATIONS, read_table
from tests.tasks.tiny_student import write_student

SANDBOX = SandboxConfig()


class TableEngine:
    """Answers a prompt by the words in it, every other sample not at all, and remembers what it was asked."""

    def __init__(self, student: Path, answers: dict[str, str]) -> None:
        self.tokenizer: Any = load_tokenizer(student)
        self.answers = answers
        self.asked: list[str] = []
        self.calls = 0
        self.figures: Any = None  # of the stage that asked

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
        if options["temperature"] == 0.0:
            assert size == 1
            self.asked = [self.tokenizer.decode(prompt) for prompt in prompts]
        asked = [self.tokenizer.decode(prompt) for prompt in prompts]
        texts = [next((text for word, text in self.answers.items() if word in question), "") for question in asked]
        return [
            [
                Rollout("", 0, n, prompt, [1] * len(text), [], [], "stop", "" if n % 2 else text, checkpoint.name)
                for n in range(size)
            ]
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
    exams: Path | None = None,
) -> Any:
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


def test_a_part_of_the_exam_has_all_levels_in_it() -> None:
    """In the split's own order the first half of it would be of the first level alone."""
    part = ExamPart(benchmark="arithmetic", levels=("1", "2"), problems=200)
    own, rest = ([problem for _, problem in exam_problems(each, SANDBOX)] for each in (part, part.following(200)))
    assert len({problem.problem_id for problem in [*own, *rest]}) == 400
    assert 80 < sum(problem.level == "1" for problem in own) < 120
    (few,) = [[problem for _, problem in exam_problems(part.model_copy(update={"problems": 20}), SANDBOX)]]
    assert few == own[:20]


def test_nobody_sits_the_same_exam_twice(tmp_path: Path, student: Path) -> None:
    part = ExamPart(benchmark="arithmetic", levels=("1",), problems=3)
    first, one = sit(tmp_path / "champion", student, [part], {}, exams=tmp_path / "exams")
    again, engine = sit(tmp_path / "distilled", student, [part], {}, exams=tmp_path / "exams")
    assert again.equals(first)
    assert (one.calls, engine.calls) == (1, 0)
    assert contents(tmp_path / "distilled") == contents(tmp_path / "champion")
    assert engine.figures == one.figures  # what it took to sit it, not to look it up
    assert one.figures["seconds_sat"] > 0
    other = write_student(tmp_path / "other")
    assert sit(tmp_path / "others", other, [part], {}, exams=tmp_path / "exams")[1].calls == 1


def test_who_could_not_be_graded_sits_again(tmp_path: Path, student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part, exams = ExamPart(benchmark="arithmetic", levels=("1",), problems=3), tmp_path / "exams"
    with monkeypatch.context() as broken:
        broken.setattr(Arithmetic, "score", lambda _, attempts: [Score(None, "grader_failed")] * len(attempts))
        first, _ = sit(tmp_path / "broken", student, [part], {}, exams=exams)
    again, engine = sit(tmp_path / "mended", student, [part], {}, exams=exams)
    assert (first.correct.isna().all(), again.correct.isna().any(), engine.calls) == (True, False, 1)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_a_part_that_is_new_is_sat_alone(tmp_path: Path, student: Path) -> None:
    """An exam that is interrupted, or gets one part more, keeps what was answered."""
    parts = [ExamPart(benchmark="arithmetic", levels=(level,), problems=2) for level in ("1", "2", "3")]
    sit(tmp_path / "first", student, parts[:2], {}, exams=tmp_path / "exams")
    table, engine = sit(tmp_path / "second", student, parts, {}, exams=tmp_path / "exams")
    assert (len(table), engine.calls, len(engine.asked)) == (6, 1, 2)
    whole, _ = sit(tmp_path / "apart", student, parts, {})
    assert table.equals(whole)


def test_answers_are_sampled_besides_the_greedy_ones(tmp_path: Path, student: Path) -> None:
    source = gsm8k(tmp_path / "data", [("How many apples?", "#### 4"), ("How many pears?", "#### 5")])
    part = ExamPart(benchmark="gsm8k", source=source, samples=3, temperature=0.8)
    answers = {"apples": "#### 4", "pears": "#### 4"}
    table, engine = sit(tmp_path / "exam", student, [part], answers)
    assert engine.calls == 2
    assert table["sample"].tolist() == [0, 0]  # the table that decides has the greedy answers only
    sampled = read_table(tmp_path / "exam" / "samples.parquet", EVALUATIONS)
    assert sampled["problem_id"].tolist() == ["gsm8k/test/0"] * 3 + ["gsm8k/test/1"] * 3
    assert sampled["sample"].tolist() == [0, 1, 2] * 2
    assert sampled["verdict"].tolist() == ["correct", "no_answer", "correct", "wrong", "no_answer", "wrong"]
    own = exam_figures(tmp_path / "exam")["gsm8k"]
    assert (own.sampled, own.accuracy.accuracy) == (3, 0.5)
    assert own.pass_at == {1: pytest.approx(1 / 3), 2: 0.5, 3: 0.5}  # (2/3 + 0) / 2, then certain of the first problem


def test_a_question_that_is_too_long_has_as_many_empty_answers(tmp_path: Path, student: Path) -> None:
    rows = [("How many pears? " + "Think. " * 100, "#### 5")]
    part = ExamPart(benchmark="gsm8k", source=gsm8k(tmp_path / "data", rows), samples=2)
    sit(tmp_path / "exam", student, [part], {}, longest=400)
    sampled = read_table(tmp_path / "exam" / "samples.parquet", EVALUATIONS)
    assert (sampled["sample"].tolist(), set(sampled["finish_reason"])) == ([0, 1], {"length"})


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
