"""The decision over thousands of synthetic nights: what is promoted by luck, and what is found."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.promotions import p_values
from tasks.evaluation.statistics import decide, mcnemar, power
from tests.tasks.doubles.exam import compared

ALPHA, EXAM, FLIPS = 0.025, 540, 0.2
RARE = 1e-4  # a test that is right fails for one seed in ten thousand


def most(nights: int, rate: float) -> int:
    """So many promotions of so many independent nights are not passed by luck."""
    return int(binom.isf(RARE, nights, rate))


def test_p_values_of_many_exams_are_those_of_each() -> None:
    gained, lost = np.random.default_rng(1).integers(0, 9, (2, 40))
    each = [mcnemar(int(up), int(down)) for up, down in zip(gained, lost, strict=True)]
    assert p_values(gained, lost) == pytest.approx(each, rel=1e-12)


def test_two_thousand_nights_without_a_change_promote_no_more_than_alpha() -> None:
    """By `decide` itself, at every level of skill; the exact test stays below α, and not far below."""
    drawn = np.random.default_rng(7).random((2000, 2, 120)) < np.random.default_rng(8).random((2000, 1, 1))
    empty, promoted = compared([], []), 0
    for before, after in drawn:
        gained, lost = int((~before & after).sum()), int((before & ~after).sum())
        night = replace(empty, n=120, gained=gained, lost=lost, p_value=mcnemar(gained, lost))
        promoted += decide([(night, 0.05)], [], ALPHA).promote
    assert 2000 * ALPHA / 4 < promoted <= most(2000, ALPHA)


def test_with_three_targets_two_thousand_nights_promote_no_more_than_alpha() -> None:
    """Without Holm's correction it would be nearly three times as many."""
    random, empty = np.random.default_rng(9), compared([], [])
    by_holm = alone = 0
    for flips in random.multinomial(200, [0.1, 0.1, 0.8], size=(2000, 3)):
        parts = [replace(empty, n=200, p_value=mcnemar(int(up), int(down)), guard_low=0.0) for up, down, _ in flips]
        by_holm += decide([(part, 0.05) for part in parts], [], ALPHA).promote
        alone += any(part.p_value <= ALPHA for part in parts)
    assert 0 < by_holm <= most(2000, ALPHA) < alone


def test_with_the_owners_picks_two_thousand_nights_promote_no_more_than_alpha() -> None:
    random, empty = np.random.default_rng(10), compared([], [])
    by_both = alone = 0
    for (up, down, _), (gained, lost, _) in zip(
        random.multinomial(200, [0.1, 0.1, 0.8], size=2000),
        random.multinomial(40, [0.25, 0.25, 0.5], size=2000),
        strict=True,
    ):
        part = replace(empty, n=200, p_value=mcnemar(int(up), int(down)), guard_low=0.0)
        taste = mcnemar(int(gained), int(lost))
        by_both += decide([(part, 0.05)], [], ALPHA, taste).promote
        alone += min(part.p_value, taste) <= ALPHA
    assert 0 < by_both <= most(2000, ALPHA)
    assert by_both < alone


@pytest.mark.full
def test_five_points_on_540_problems_are_found_in_seven_nights_of_ten() -> None:
    exact = power(EXAM, FLIPS, 0.05, ALPHA)
    assert exact >= 0.7
    homes = 4000
    drawn = np.random.default_rng(6).multinomial(EXAM, [0.125, 0.075, 0.8], size=homes)
    found = (p_values(drawn[:, 0], drawn[:, 1]) <= ALPHA).mean()
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / homes))


@pytest.mark.parametrize(("n", "share", "difference"), [(12, 0.6, 0.3), (30, 0.2, 0.15), (40, 0.9, 0.0)])
def test_the_exact_power_is_the_sum_over_every_exam_that_could_be(n: int, share: float, difference: float) -> None:
    """Over all (gained, lost): the multinomial's probability, where the test itself says yes."""
    up, down = (share + difference) / 2, (share - difference) / 2
    total = sum(
        float(binom.pmf(gained, n, up) * binom.pmf(lost, n - gained, down / (1 - up)))
        for gained in range(n + 1)
        for lost in range(n + 1 - gained)
        if mcnemar(gained, lost) <= 0.05
    )
    assert power(n, share, difference, 0.05) == pytest.approx(total, rel=1e-9)
