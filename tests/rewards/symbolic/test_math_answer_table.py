"""What answers to real MATH problems are worth: each truth with forms that are right and that are wrong."""

import tomllib
from pathlib import Path

import pytest

from rewards.competition_math import CompetitionMath
from rewards.verifier import Attempt, Problem, Score

TABLE = tomllib.loads(Path(__file__).with_name("math_answers.toml").read_text(encoding="utf-8"))["problem"]
ROWS = [
    (problem["truth"], form, verdict)
    for problem in TABLE
    for verdict, forms in (("correct", problem["right"]), ("wrong", problem["wrong"]))
    for form in forms
]


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str], Score]:
    """All rows judged in one call, as a night does."""
    attempts = [
        Attempt(Problem("", "math", "", rf"So it is $\boxed{{{truth}}}$."), rf"Hence \boxed{{{form}}}.")
        for truth, form, _ in ROWS
    ]
    return dict(zip([row[:2] for row in ROWS], CompetitionMath().score(attempts), strict=True))


@pytest.mark.parametrize(("truth", "form", "verdict"), ROWS)
def test_what_an_answer_is_worth(scores: dict[tuple[str, str], Score], truth: str, form: str, verdict: str) -> None:
    score = scores[truth, form]
    assert (score.verdict, score.reward) == (verdict, float(verdict == "correct")), score.detail
    assert score.parts == {"correct": score.reward}


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) == len({row[:2] for row in ROWS}) >= 150
