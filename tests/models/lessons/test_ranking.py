"""How well rewards rank held-out picks: by hand, intervals against scipy, and whether they may serve."""

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from models.lessons.preference_data import Pick
from models.lessons.ranking import Ranking, exact_interval, hit, margin, rank

NAN = float("nan")


def pick(lengths: list[int], chosen: int) -> Pick:
    return Pick((1,), tuple((5,) * length for length in lengths), chosen)


@pytest.mark.parametrize(
    ("rewards", "chosen", "expected"),
    [([1, 3, 2], 1, 1), ([1, 3, 2], 0, 0), ([3, 3, 2], 0, 0.5), ([0, 0, 0, 0], 2, 0.25), ([3, 3, 2], 2, 0)],
)
def test_a_hit(rewards: list[float], chosen: int, expected: float) -> None:
    assert hit(rewards, chosen) == expected


@pytest.mark.parametrize(
    ("values", "chosen", "expected"),
    [([-1, -3], 0, 2), ([-1, -3], 1, -2), ([-2, -2], 0, 0), ([2, 0, 0, 0, -2], 0, 2.5 / 1.6**0.5)],
)
@pytest.mark.parametrize("certainty", [0.5, 1, 3])
def test_a_margin_is_the_same_for_a_more_certain_model(
    values: list[float], chosen: int, expected: float, certainty: float
) -> None:
    assert margin([certainty * value for value in values], chosen) == pytest.approx(expected)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys(counts: tuple[int, int]) -> None:
    own, theirs = exact_interval(*counts), binomtest(*counts).proportion_ci(0.95, method="exact")
    assert (own.low, own.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_a_bias_towards_length_is_seen() -> None:
    picks = [pick([2, 5, 9], 2), pick([8, 1, 3], 0), pick([4, 6, 7], 0), pick([9, 2, 3], 1)]
    found = rank([[float(length) for length in one.lengths] for one in picks], picks)
    assert found.accuracy.value == 0.5
    assert found.chance == pytest.approx(1 / 3)
    assert found.length == {"longest_alone": 0.5, "shortest_alone": 0.5, "longest_top": 1}


def served(right: int, of: int, *answers: int) -> Ranking:
    """`right` of so many picks, of so many answers by turns."""
    shown = [(answers or (5,))[place % max(1, len(answers))] for place in range(of)]
    rewards = [[1.0 if place < right else -1.0, *[0.0] * (count - 1)] for place, count in enumerate(shown)]
    return rank(rewards, [pick([1] * count, 0) for count in shown])


def test_it_may_serve_where_the_lower_end_is_above_chance() -> None:
    # scipy: the lower end of 19 in 60 is 0.2026, of 18 in 60 it is 0.1885
    assert served(19, 60).refusal is None
    refusal = served(18, 60).refusal
    assert refusal == (
        "on 60 held-out picks it is right 30% of the time, with a 95 % interval of 19% to 43%: that may be chance (20%)"
    )


@pytest.mark.parametrize("answers", [(2,), (5,), (50,), (2, 5)])
@pytest.mark.parametrize("picks", [1, 2, 3, 5, 10, 30, 60])
def test_luck_serves_in_at_most_one_case_of_forty(answers: tuple[int, ...], picks: int) -> None:
    chances = [1 / answers[place % len(answers)] for place in range(picks)]
    right = reduce(np.convolve, [[1 - chance, chance] for chance in chances])  # the probability of 0, 1, 2 … right
    lucky = sum(right[count] for count in range(picks + 1) if served(count, picks, *answers).refusal is None)
    assert lucky <= 0.025
    if picks == 60 and answers != (50,):
        assert lucky > 0.01  # and no stricter than it has to be


def test_uninformative_rewards_may_not_serve() -> None:
    picks = [pick([1] * 5, 0) for _ in range(400)]
    assert rank([[0.0] * 5] * 400, picks).accuracy.value == pytest.approx(0.2)
    assert rank([[0.0] * 5] * 400, picks).refusal is not None
    assert rank([[NAN] * 5] * 400, picks).accuracy.value == pytest.approx(0.2)
    assert rank([[math.inf, *[0.0] * 4]] * 400, picks).refusal is not None
    assert rank([], []).refusal is not None
