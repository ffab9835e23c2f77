"""MATH: its problems, levels, ids and MATH-500; what a truth may be; and a grader that fails or takes too long."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conf.storage.home import InputError
from rewards.competition_math import SUBJECTS, CompetitionMath
from rewards.symbolic.equivalence import compare
from rewards.verifier import Attempt, Problem, Score
from tests.rewards.datasets import MATH, needs_data, write_rows


def scores(truth: str, *completions: str) -> list[Score]:
    problem = Problem("math/test/algebra/0", "math", "What is 2 + 3?", truth)
    return CompetitionMath().score([Attempt(problem, completion) for completion in completions])


@pytest.mark.parametrize(
    "truth", [r"First \boxed{4}, then \boxed{5}.", r"\fbox{5}", "5", " 5 ", r"\frac{10}{2}", "$5$"]
)
def test_the_truth_is_a_solution_or_a_bare_answer(truth: str) -> None:
    assert [score.verdict for score in scores(truth, r"\boxed{5}", r"\boxed{4}")] == ["correct", "wrong"]


def test_what_is_too_hard_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.competition_math.compare", partial(compare, seconds=0.5))
    hard = r"\boxed{x^{99} + y^{98} = z^{97} + \sin x}"
    [score] = scores(r"2x^{99} + 2y^{98} = 2z^{97} + 2\sin x + 1", hard)
    assert (score.verdict, score.reward) == ("timeout", 0.0)


def test_without_math_verify_only_texts_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('none here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = scores(r"2\sqrt{3}", r"\boxed{2 \sqrt 3}", r"\boxed{\sqrt{12}}", r"\boxed{\text{none}}", "none")
    assert [score.reward for score in found] == [1.0, None, 0.0, 0.0]
    assert found[1].verdict == "grader_failed"
    [reason] = found[1].detail.splitlines()
    assert reason.endswith("ImportError: none here")


def test_the_prompt_the_level_and_the_subject(tmp_path: Path) -> None:
    rows = [MATH | {"level": "Level 5", "type": "Counting & Probability"}, MATH | {"level": "Level ?"}]
    benchmark = CompetitionMath(write_rows(tmp_path / "test.jsonl", *rows))
    first, second = benchmark.problems("test")
    assert benchmark.prompt(first) == (
        "Solve the problem below. Please reason step by step, and put your final answer within \\boxed{}.\nHow many?"
    )
    assert (first.level, second.level) == ("5", None)
    assert first.problem_id.startswith("math/test/counting_and_probability/")
    assert (first.subject, second.subject) == ("counting_and_probability", "algebra")
    assert first == replace(first, subject=None)  # a round's table has no subject


def test_only_the_chosen_levels(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "train.jsonl", *[MATH | {"level": f"Level {level}"} for level in "12345?"])
    problems = CompetitionMath(source, levels=["2", "4"]).problems("train")
    assert [problem.level for problem in problems] == ["2", "4"]


def test_math_500_needs_its_ids(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "test.jsonl", MATH | {"id": "test/algebra/1"})
    benchmark = CompetitionMath(source, subset="500")
    with pytest.raises(InputError, match="math500_ids.txt"):
        benchmark.problems("test")
    (tmp_path / "math500_ids.txt").write_text("test/algebra/2\n")
    with pytest.raises(InputError, match="test/algebra/2"):
        benchmark.problems("test")
    (tmp_path / "math500_ids.txt").write_text("test/algebra/1\n")
    assert len(benchmark.problems("test")) == 1


def test_the_hub_gives_the_same_problems_as_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all subjects, and MATH-500, whose rows on the hub have other fields."""

    def load_dataset(name: str, config: str | None, **_: str | None) -> list[dict[str, Any]]:
        if name == "HuggingFaceH4/MATH-500":
            return [{"problem": "algebra?", "solution": r"\boxed{5}", "answer": "5", "subject": "Algebra", "level": 3}]
        return [row for row in rows if row["problem"] == f"{config}?"]

    rows = [MATH | {"type": name.replace("_", " "), "problem": f"{name}?"} for name in SUBJECTS]
    rows[1]["type"] = "Counting & Probability"
    local = CompetitionMath(write_rows(tmp_path / "test.jsonl", *rows)).problems("test")
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert CompetitionMath().problems("test") == local
    assert len(local) == 7
    [published] = CompetitionMath(subset="500").problems("test")
    assert published == replace(local[0], truth=r"\boxed{5}")


@needs_data
def test_the_real_levels_and_math_500(caplog: pytest.LogCaptureFixture) -> None:
    hard = CompetitionMath(levels=["5"]).problems("test")
    assert len(hard) == 1324
    assert {problem.level for problem in hard} == {"5"}
    problems = CompetitionMath(subset="500").problems("test")
    assert len(problems) == 500
    assert {problem.problem_id for problem in problems} <= {p.problem_id for p in CompetitionMath().problems("test")}
    assert problems[0].question.startswith("Convert the point $(0,3)$ in rectangular coordinates to polar")
    assert not caplog.records
