"""What rewards are worth on held-out picks: numbers by hand, intervals against scipy, and whether they may serve."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from models.picks import Pick
from models.ranking import Ranking, hit, rank, reliability, wilson

NAN = float("nan")


def pick(lengths: list[int], chosen: int) -> Pick:
    return Pick((1,), tuple((5,) * length for length in lengths), chosen)


@pytest.mark.parametrize(
    ("rewards", "chosen", "expected"),
    [([1, 3, 2], 1, 1), ([1, 3, 2], 0, 0), ([3, 3, 2], 0, 0.5), ([0, 0, 0, 0], 2, 0.25), ([3, 3, 2], 2, 0)],
)
def test_a_hit(rewards: list[float], chosen: int, expected: float) -> None:
    assert hit(rewards, chosen) == expected


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys(counts: tuple[int, int]) -> None:
    own, theirs = wilson(*counts), binomtest(*counts).proportion_ci(0.95, method="wilson")
    assert (own.low, own.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_the_interval_of_half_hits_and_of_nothing() -> None:
    assert wilson(4.5, 10).value == 0.45
    assert wilson(4, 10).low < wilson(4.5, 10).low < wilson(5, 10).low
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)


def test_the_reliability_curve_by_hand() -> None:
    sure, unsure = [math.log(9), 0.0], [0.0, 0.0]  # 0.9 and 0.5
    bins = reliability([sure, sure, sure, unsure], [1.0, 1.0, 0.0, 0.5])
    assert [(each.low, each.high, each.n) for each in bins] == [(0.5, 0.6, 1), (0.9, 1.0, 3)]
    assert bins[1].confidence == pytest.approx(0.9)
    assert bins[1].accuracy == pytest.approx(2 / 3)
    picks = [pick([1, 1], chosen) for chosen in (0, 0, 1, 0)]
    error = rank([sure, sure, sure, unsure], picks).expected_calibration_error
    assert error == pytest.approx(3 / 4 * (0.9 - 2 / 3))


def test_confidence_of_one_is_in_the_last_bin() -> None:
    (only,) = reliability([[1e6, 0.0]], [1.0])
    assert (only.low, only.high, only.confidence) == (0.9, 1.0, 1.0)


def test_a_model_that_likes_length_is_seen() -> None:
    picks = [pick([2, 5, 9], 2), pick([8, 1, 3], 0), pick([4, 6, 7], 0), pick([9, 2, 3], 1)]
    found = rank([[float(length) for length in one.lengths] for one in picks], picks)
    assert found.accuracy.value == 0.5
    assert found.length.longest_alone == 0.5
    assert found.length.shortest_alone == 0.5
    assert found.length.longest_top == 1
    assert (found.length.where_longest.value, found.length.where_longest.n) == (1, 2)
    assert (found.length.elsewhere.value, found.length.elsewhere.n) == (0, 2)
    assert found.length.correlation == pytest.approx(1)


def test_chance_is_the_mean_of_one_over_n() -> None:
    assert rank([[0.0] * 2, [0.0] * 5], [pick([1, 2], 0), pick([1] * 5, 0)]).chance == pytest.approx(
        (1 / 2 + 1 / 5) / 2
    )


def served(right: int, of: int, answers: int = 5) -> Ranking:
    picks = [pick([1] * answers, 0) for _ in range(of)]
    rewards = [[1.0 if place < right else -1.0, *[0.0] * (answers - 1)] for place in range(of)]
    return rank(rewards, picks)


def test_it_may_serve_where_the_lower_end_is_above_chance() -> None:
    # scipy: the lower end of 20 in 60 is 0.2273, of 18 in 60 it is 0.1988
    assert served(20, 60).refusal is None
    refusal = served(18, 60).refusal
    assert refusal == (
        "on 60 held-out picks it is right 30% of the time, with a 95 % interval of 20% to 43%: that may be chance (20%)"
    )


def test_rewards_that_say_nothing_may_not_serve() -> None:
    picks = [pick([1] * 5, 0) for _ in range(400)]
    assert rank([[0.0] * 5] * 400, picks).accuracy.value == pytest.approx(0.2)
    assert rank([[0.0] * 5] * 400, picks).refusal is not None
    assert rank([[NAN] * 5] * 400, picks).accuracy.value == pytest.approx(0.2)
    assert rank([[math.inf, *[0.0] * 4]] * 400, picks).refusal is not None
    assert rank([], []).refusal is not None


def test_random_rewards_seldom_serve() -> None:
    chance = random.Random(1)
    picks = [pick([1] * 5, 0) for _ in range(60)]
    found = [rank([[chance.random() for _ in range(5)] for _ in picks], picks) for _ in range(400)]
    assert sum(ranking.refusal is not None for ranking in found) >= 0.95 * 400
