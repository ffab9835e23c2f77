"""The learned reward's figures of a round, by hand."""

import math

import pandas as pd
import pytest

from tasks.training.metrics import learned_figures

ROWS = [  # group, verdict, tokens, learned, its z, what it moved
    (0, "correct", 4, 1.0, -1.0, -0.04),
    (0, "correct", 8, 3.0, 1.0, 0.04),
    (1, "judged", 10, -2.0, 1.0, None),
    (1, "judged", 20, -4.0, -1.0, None),
    (1, "grader_failed", 99, None, None, None),
]


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Of answers and their parts in one table, where a user's grader gives parts of the names of columns."""
    parts = table[["learned", "learned_z", "tie_breaker"]].assign(tokens=-1.0, group=-1.0, verdict=-1.0, ended=-1.0)
    return learned_figures(table[["group", "verdict", "tokens", "ended"]], parts)


def answers(rows: list[tuple[object, ...]], cut: int = 0) -> pd.DataFrame:
    """The last `cut` of them did not come to their end."""
    table = pd.DataFrame(rows, columns=["group", "verdict", "tokens", "learned", "learned_z", "tie_breaker"])
    return table.assign(ended=[place < len(rows) - cut for place in range(len(rows))])


def test_by_hand() -> None:
    found = figures(answers(ROWS))
    assert found == pytest.approx(
        {
            "reward/learned": -0.5,
            "reward/learned_owner": -3.0,
            "reward/learned_spread": 1.0,
            # within groups: rewards −1, 1, 1, −1, tokens −2, 2, −5, 5
            "reward/learned_length": (2 + 2 - 5 - 5) / math.sqrt(4 * (4 + 4 + 25 + 25)),
            "reward/learned_z": 0.0,
            "reward/tie_breaker": 0.0,
        }
    )


def test_what_the_model_says_of_an_answer_that_was_cut_is_in_no_figure() -> None:
    """It has learnt of answers' ends; that such answers were there, their parts tell."""
    cut = [(0, "correct", 50, 99.0, -1.0, -0.04), (1, "judged", 60, -99.0, -1.0, None)]
    whole, found = figures(answers(ROWS)), figures(answers([*ROWS, *cut], cut=2))
    parts = {"reward/learned_z": -2 / 6, "reward/tie_breaker": -0.04 / 3}
    assert found == pytest.approx(whole | parts)


def test_a_round_in_which_every_answer_was_cut_has_no_mean() -> None:
    found = figures(answers(ROWS, cut=len(ROWS)))
    known = {name for name, value in found.items() if not math.isnan(value)}
    assert known == {"reward/learned_z", "reward/tie_breaker"}


def test_a_reward_that_goes_by_length_alone_shows() -> None:
    rows = [(group, "judged", tokens, group + 0.1 * tokens, 0.0, None) for group in (0, 9) for tokens in (3, 5, 9)]
    assert figures(answers(rows))["reward/learned_length"] == pytest.approx(1.0)


def test_what_cannot_be_known_is_nan() -> None:
    found = figures(answers([(0, "correct", 4, 1.0, 0.0, 0.0), (0, "correct", 4, 1.0, 0.0, 0.0)]))
    assert math.isnan(found["reward/learned_length"])
    assert math.isnan(found["reward/learned_owner"])


def test_the_spread_is_that_of_the_owners_prompts_where_there_are_any() -> None:
    verified = [(0, "correct", 4, 0.0, -1.0, 0.0), (0, "wrong", 4, 8.0, None, 0.0)]
    owned = [(1, "judged", 10, -2.0, 1.0, None), (1, "judged", 20, -4.0, -1.0, None)]
    assert figures(answers(verified))["reward/learned_spread"] == 4.0
    assert figures(answers([*verified, *owned]))["reward/learned_spread"] == 1.0
