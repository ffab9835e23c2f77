"""Where a night begins: with the day copy only if it favours held-out picks more and does no worse in the quiz."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.teaching.day_at_night import choose_start
from tests.tasks.doubles.exam import taken_quiz
from tests.tasks.doubles.picks import ranking


def chosen(folder: Path, right: int | None, solved: int | None, refused: str = "") -> dict[str, Any]:
    """`right`: of 12 held-out picks. `solved`: of 40 quiz problems, of which the champion solves 20."""
    count = 3 if right is None else 12
    choose_start.write(
        folder,
        champion=taken_quiz(folder / "quiz-champion", 20, 40),
        day=None if solved is None else taken_quiz(folder / "quiz-day", solved, 40),
        champion_picks=ranking(folder / "champion", [False] * count),
        day_picks=ranking(folder / "day", [number < (right or 3) for number in range(count)]),
        alpha=0.025,
        refused=refused,
    )
    return json.loads((folder / "start.json").read_text())


@pytest.mark.parametrize(
    ("right", "solved", "begins", "reason"),
    [
        (10, 20, True, "in 10 of 10 conversations (p = 0.0010), and ranks it first in 10 of 12"),
        (10, None, True, "in 10 of 10 conversations"),  # the night has no quizzes
        (3, 20, False, "not enough"),
        (10, 15, True, "in 10 of 10 conversations"),  # p = 1/32
        (10, 14, False, "In the quiz it does worse than the champion (p = 0.0156)."),
        (None, 20, False, "too few held-out picks"),
    ],
)
def test_it_must_be_earned(tmp_path: Path, right: int | None, solved: int | None, begins: bool, reason: str) -> None:
    found = chosen(tmp_path, right, solved)
    assert found["day"] is begins
    assert reason in " ".join(found["reasons"])


def test_a_ranking_that_failed_is_not_called_too_few_picks(tmp_path: Path) -> None:
    picks: dict[str, Any] = {"champion_picks": ranking(tmp_path / "champion", [False] * 12), "day_picks": None}
    choose_start.write(tmp_path, champion=None, day=None, alpha=0.025, **picks)
    found = json.loads((tmp_path / "start.json").read_text())
    assert found == {"day": False, "reasons": ["The held-out picks were not ranked."]}


def test_it_says_why_there_is_no_day_copy(tmp_path: Path) -> None:
    assert chosen(tmp_path, 12, 20, "The merge is wrong.") == {"day": False, "reasons": ["The merge is wrong."]}
