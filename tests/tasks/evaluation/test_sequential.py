"""The exam's looks: what each may decide, and what whole exams come to."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.evaluation.sequential import detects, levels, looks, outlook, smallest_gain, verdict
from tasks.evaluation.statistics import mcnemar

ALPHA = 0.025


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1600, [100, 200, 400, 800, 1600]),
        (1319, [100, 200, 400, 800, 1319]),
        (850, [100, 200, 400, 850]),
        (150, [100, 150]),
        (149, [149]),
        (60, [60]),
        (1, [1]),
    ],
)
def test_the_looks_double_up_to_the_most(most: int, expected: list[int]) -> None:
    assert looks(most) == expected


@given(most=st.integers(1, 10**6), alpha=st.floats(1e-6, 0.5))
def test_the_levels_grow_and_spend_alpha_but_no_more(most: int, alpha: float) -> None:
    at = looks(most)
    found = levels(at, alpha)
    assert sum(found) <= alpha
    assert math.fsum(found) == pytest.approx(alpha)
    assert all(0 < early < late for early, late in pairwise(found))
    assert found[0] == pytest.approx(alpha * (at[0] / most) ** 2)


@pytest.mark.parametrize(
    ("most", "look", "gained", "lost", "expected"),
    [
        (1600, 100, 14, 0, "better"),  # p = 2⁻¹⁴ = 6.1e-5; the first look has 9.8e-5
        (1600, 100, 13, 0, "undecided"),  # 1.2e-4
        (1600, 100, 0, 30, "undecided"),  # before 400 problems no exam ends for being behind
        (1600, 400, 20, 20, "not ahead"),
        (1600, 400, 21, 20, "undecided"),
        (1600, 1600, 20, 20, "not ahead"),
        (1600, 1600, 21, 20, "undecided"),
        (1600, 1600, 80, 40, "better"),
        (50, 50, 3, 3, "not ahead"),  # the last look of a short exam
        (50, 50, 7, 1, "undecided"),  # p = 9/256 = .035
        (50, 50, 8, 1, "better"),  # p = 10/512 = .0195
    ],
)
def test_a_look_decides(most: int, look: int, gained: int, lost: int, expected: str) -> None:
    assert verdict(look, gained, lost, looks(most), ALPHA) == expected


@pytest.mark.parametrize(
    ("look", "gained", "at", "message"),
    [
        (300, 10, [100, 200, 400], "300 problems are none of the exam's looks: 100, 200, 400"),
        (200, 10, [200, 100], r"must ascend from at least 1: \[200, 100\]"),
        (100, 10, [], "must ascend"),
        (100, 101, [100, 200], "101 gained and 0 lost are not flips of 100 problems"),
    ],
)
def test_what_cannot_be_is_refused(look: int, gained: int, at: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verdict(look, gained, 0, at, ALPHA)


@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_the_outlook_is_what_exams_come_to(gain: float) -> None:
    at, runs = looks(450), 2000
    changes = np.random.default_rng(1).choice([1, -1, 0], (runs, 450), p=[(0.15 + gain) / 2, (0.15 - gain) / 2, 0.85])
    ended = [_sit(answers, at) for answers in changes]
    expected = outlook(at, ALPHA, gain)
    promoted = np.mean([found == "better" for found, _ in ended])
    assert promoted == pytest.approx(expected.promoted, abs=4 * np.sqrt(0.25 / runs))
    assert np.mean([look for _, look in ended]) == pytest.approx(expected.problems, rel=0.03)


def _sit(answers: np.ndarray, at: list[int]) -> tuple[str, int]:
    """Return how an exam ends, and after how many problems."""
    seen = (verdict(look, (answers[:look] > 0).sum(), (answers[:look] < 0).sum(), at, ALPHA) for look in at)
    ends = [(found, look) for found, look in zip(seen, at, strict=True) if found != "undecided"]
    return ends[0] if ends else ("undecided", at[-1])


@pytest.mark.parametrize(("n", "share", "gain"), [(12, 0.6, 0.3), (30, 0.2, 0.15), (40, 0.9, 0.0)])
def test_an_exam_of_one_look_has_the_power_of_the_exact_test(n: int, share: float, gain: float) -> None:
    """Over all (gained, lost): the multinomial's probability, where the test itself says yes."""
    up, down = (share + gain) / 2, (share - gain) / 2
    total = sum(
        float(binom.pmf(gained, n, up) * binom.pmf(lost, n - gained, down / (1 - up)))
        for gained in range(n + 1)
        for lost in range(n + 1 - gained)
        if mcnemar(gained, lost) <= 0.05
    )
    assert outlook([n], 0.05, gain, share).promoted == pytest.approx(total, abs=1e-7)


def test_the_smallest_gain_has_the_power_it_claims() -> None:
    gain = smallest_gain([400], ALPHA, share=0.2)
    assert gain is not None
    drawn = np.random.default_rng(3).multinomial(400, [0.1 + gain / 2, 0.1 - gain / 2, 0.8], size=20_000)
    needed = np.array([0, *(binom.isf(ALPHA, np.arange(1, 401), 0.5) + 1)])
    found = drawn[:, 0] >= needed[drawn[:, 0] + drawn[:, 1]]
    assert found[drawn[:, 0] + drawn[:, 1] > 0].mean() == pytest.approx(0.8, abs=0.01)


def test_where_hardly_anything_flips_all_flips_are_gains_and_five_problems_see_none() -> None:
    gain = smallest_gain([400], ALPHA, share=1e-9)
    assert gain is not None
    assert binom.sf(5, 400, gain) == pytest.approx(0.8, abs=1e-3)  # at least 6 flips
    assert smallest_gain([5], ALPHA) is None


@pytest.mark.parametrize(
    ("problems", "said"),
    [
        (300, "a true gain of 0.07 four times in five if 15 % of the answers flip"),
        (40, "a true gain of 0.19 four times in five if no answer becomes wrong"),  # more than the 15 %
        (5, None),
    ],
)
def test_what_an_exam_detects_is_said_with_what_it_assumes(problems: int, said: str | None) -> None:
    assert detects(looks(problems), ALPHA) == said


def test_a_gain_has_to_come_from_flips() -> None:
    with pytest.raises(ValueError, match="cannot come from"):
        outlook([100], ALPHA, 0.3, share=0.15)
