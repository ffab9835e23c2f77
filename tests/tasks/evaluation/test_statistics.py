"""The exam's statistics, against hand-worked numbers, scipy and laws."""

import tracemalloc
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from tasks.evaluation.statistics import (
    Accuracy,
    bad_luck,
    bootstrap,
    mcnemar,
    sign_flip,
    smallest_guard,
    tango_low,
)


# McNemar by hand: of 8 flips 7 gained: (8 + 1) / 256. Of 6 flips 6 gained: 1 / 64. Of 5, 5: 1 / 32.
@pytest.mark.parametrize(
    ("gained", "lost", "p_value"),
    [(7, 1, 9 / 256), (6, 0, 1 / 64), (5, 0, 1 / 32), (0, 3, 1.0), (0, 0, 1.0), (2, 2, 11 / 16)],
)
def test_mcnemar_by_hand(gained: int, lost: int, p_value: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx(p_value, rel=1e-12)


@pytest.mark.parametrize(("value", "low", "high"), [(0.6, 0.0, 1.0), (-1.0, -1.0, 1.0), (2.5, 0.0, 2.5)])
def test_one_episode_has_a_value_and_no_narrow_interval(value: float, low: float, high: float) -> None:
    assert Accuracy.of_outcomes(pd.Series([value, np.nan]), counted=False) == Accuracy(value, low, high, 1, False)


def test_without_gains_tangos_bound_is_wilsons() -> None:
    """Then the difference is minus the share lost, whose score interval is Wilson's."""
    for lost, n in ((0, 98), (5, 100), (60, 100)):
        wilson = binomtest(lost, n, alternative="less").proportion_ci(0.95, method="wilson").high
        assert tango_low(0, lost, n) == pytest.approx(-wilson, abs=1e-9)
    assert tango_low(0, 98, 98) == pytest.approx(-1.0, abs=1e-6)
    assert tango_low(0, 0, 0) == -1.0


@pytest.mark.parametrize(("n", "margin", "share"), [(100, 0.05, 0.05), (200, 0.05, 0.15), (150, 0.3, 0.3)])
def test_a_guard_rarely_passes_a_loss_as_large_as_its_margin(n: int, margin: float, share: float) -> None:
    """Exactly, over all numbers of flips. A Wald interval would pass 12 % in the first case, where all are losses."""
    lost = (share + margin) / 2 / share
    passed = 0.0
    for flips in range(n + 1):
        gains = [flip for flip in range(flips + 1) if tango_low(flip, flips - flip, n) > -margin]
        passed += binom.pmf(flips, n, share) * sum(binom.pmf(gain, flips, 1 - lost) for gain in gains)
    assert passed < 0.06


def test_the_score_interval_by_hand_and_at_the_ends() -> None:
    # 8 of 10, z = 1.959964: centre (0.8 + z²/20) / (1 + z²/10), half width z √(0.016 + z²/400) / (1 + z²/10)
    square = 1.959964**2
    half = 1.959964 * sqrt(0.016 + square / 400) / (1 + square / 10)
    accuracy = Accuracy.of(8, 10)
    assert accuracy.accuracy == 0.8
    assert accuracy.low == pytest.approx((0.8 + square / 20) / (1 + square / 10) - half, abs=1e-6)
    assert accuracy.high == pytest.approx((0.8 + square / 20) / (1 + square / 10) + half, abs=1e-6)
    assert (Accuracy.of(0, 10).low, Accuracy.of(10, 10).high) == (0.0, 1.0)
    assert Accuracy.of(0, 0) == Accuracy(0.0, 0.0, 1.0, 0)
    assert str(Accuracy.of(298, 400)) == "298 of 400 (74.5 %)"
    assert str(Accuracy(0.625, 0.0, 1.0, 100, counted=False)) == "0.62 on average in 100 episodes"


def test_bootstrap_agrees_with_resampling_the_pairs_themselves() -> None:
    differences = np.array([1] * 30 + [-1] * 10 + [0] * 60)
    resampled = np.random.default_rng(5).choice(differences, (20_000, 100)).mean(axis=1)
    low, high = bootstrap(differences, samples=20_000, seed=1)
    assert [low, high] == pytest.approx(np.quantile(resampled, [0.025, 0.975]), abs=0.011)
    assert bootstrap(np.zeros(100), samples=1000, seed=1) == (0.0, 0.0)


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05, 0.1, 0.5, 0.9])
def test_smallest_guard_is_the_first_that_passes(margin: float) -> None:
    least = smallest_guard(margin)
    assert tango_low(0, 0, least) > -margin
    assert least == 1 or tango_low(0, 0, least - 1) <= -margin


@pytest.mark.parametrize(("n", "margin", "share"), [(100, 0.05, 0.1), (250, 0.05, 0.1), (400, 0.1, 0.3)])
def test_bad_luck_is_that_of_nights_in_which_nothing_got_worse(n: int, margin: float, share: float) -> None:
    drawn = np.random.default_rng(3).multinomial(n, [share / 2, share / 2, 1 - share], size=4000)
    refused = np.mean([tango_low(int(gained), int(lost), n) <= -margin for gained, lost, _ in drawn])
    assert bad_luck(n, margin, share) == pytest.approx(refused, abs=0.05)


def test_bad_luck_on_a_large_benchmark_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        bad_luck(5000, 0.02)
        assert tracemalloc.get_traced_memory()[1] < 50e6  # bytes
    finally:
        tracemalloc.stop()


# Signs by hand: of the eight sums of ±3 ±2 ±1 only 3 + 2 + 1 reaches 6; two reach 3 + 2 − 1 = 4; five of eight reach 0.
@pytest.mark.parametrize(
    ("differences", "p_value"),
    [([3, 2, 1], 1 / 8), ([3, 2, -1], 2 / 8), ([3, -2, -1], 5 / 8), ([0, 0], 1.0), ([], 1.0), ([-1.0], 1.0)],
)
@pytest.mark.parametrize("scale", [1.0, 0.25, 1000.0])
def test_the_sign_flip_test_by_hand(differences: list[float], p_value: float, scale: float) -> None:
    assert sign_flip(scale * np.array(differences, dtype=float)) == pytest.approx(p_value, rel=1e-12)


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=60))
def test_the_sign_flip_test_of_flips_is_mcnemars(flipped: list[int]) -> None:
    expected = mcnemar(flipped.count(1), flipped.count(-1))
    assert sign_flip(np.array(flipped, dtype=float)) == pytest.approx(expected, rel=1e-9)
