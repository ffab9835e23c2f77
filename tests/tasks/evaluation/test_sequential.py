import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.evaluation.sequential import levels, looks, outlook, smallest_gain, verdict, verdict_of
from tasks.evaluation.statistics import detectable, power

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
def test_the_looks_double_up_to_the_most(most, expected):
    assert looks(most) == expected


@given(most=st.integers(1, 10**6), alpha=st.floats(1e-6, 0.5))
def test_the_levels_grow_and_spend_alpha_but_no_more(most, alpha):
    at = looks(most)

    found = levels(at, alpha)

    assert sum(found) <= alpha
    assert math.fsum(found) == pytest.approx(alpha)
    assert all(0 < early < late for early, late in pairwise(found))
    assert found[0] == pytest.approx(alpha * (at[0] / most) ** 2)


@pytest.mark.parametrize(
    ("look", "gained", "lost", "expected"),
    [
        (100, 14, 0, "better"),  # p = 2⁻¹⁴ = 6.1e-5; the first look has 9.8e-5
        (100, 13, 0, "undecided"),  # 1.2e-4
        (100, 0, 30, "undecided"),  # before 400 problems no exam ends for being behind
        (400, 20, 20, "not ahead"),
        (400, 21, 20, "undecided"),
        (1600, 20, 20, "not ahead"),
        (1600, 21, 20, "undecided"),
        (1600, 80, 40, "better"),
    ],
)
def test_a_look_decides(look, gained, lost, expected):
    assert verdict(look, gained, lost, looks(1600), ALPHA) == expected


def test_the_last_look_of_a_short_exam_says_who_is_not_ahead():
    assert verdict(50, 3, 3, [50], ALPHA) == "not ahead"
    assert verdict(50, 7, 1, [50], ALPHA) == "undecided"  # p = 9/256 = .035
    assert verdict(50, 8, 1, [50], ALPHA) == "better"  # p = 10/512 = .0195


def test_values_that_are_not_counts_bring_their_own_test():
    assert verdict_of(400, 1e-4, True, looks(1600), ALPHA) == "better"
    assert verdict_of(400, 0.7, False, looks(1600), ALPHA) == "not ahead"


@pytest.mark.parametrize(
    ("look", "gained", "at", "message"),
    [
        (300, 10, [100, 200, 400], "300 problems are none of the exam's looks: 100, 200, 400"),
        (200, 10, [200, 100], r"must ascend from at least 1: \[200, 100\]"),
        (100, 10, [], "must ascend"),
        (100, 101, [100, 200], "101 gained and 0 lost are not flips of 100 problems"),
    ],
)
def test_what_cannot_be_is_refused(look, gained, at, message):
    with pytest.raises(ValueError, match=message):
        verdict(look, gained, 0, at, ALPHA)


@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_the_outlook_is_what_exams_come_to(gain):
    at, runs = looks(450), 2000
    changes = np.random.default_rng(1).choice([1, -1, 0], (runs, 450), p=[(0.15 + gain) / 2, (0.15 - gain) / 2, 0.85])

    ended = [_sit(answers, at) for answers in changes]

    expected = outlook(at, ALPHA, gain)
    promoted = np.mean([found == "better" for found, _ in ended])
    assert promoted == pytest.approx(expected.promoted, abs=4 * np.sqrt(0.25 / runs))
    assert np.mean([look for _, look in ended]) == pytest.approx(expected.problems, rel=0.03)


def _sit(answers, at):
    """Return how an exam ends, and after how many problems."""
    seen = (verdict(look, (answers[:look] > 0).sum(), (answers[:look] < 0).sum(), at, ALPHA) for look in at)
    ends = [(found, look) for found, look in zip(seen, at, strict=True) if found != "undecided"]
    return ends[0] if ends else ("undecided", at[-1])


@pytest.mark.parametrize("problems", [50, 400])
def test_an_exam_of_one_look_sees_what_the_exact_test_sees(problems):
    assert outlook([problems], ALPHA, 0.03).promoted == pytest.approx(power(problems, 0.15, 0.03, ALPHA), abs=1e-6)
    assert smallest_gain([problems], ALPHA) == pytest.approx(detectable(0.15 * problems, problems, ALPHA), abs=1e-4)


def test_five_problems_see_no_gain():
    assert smallest_gain([5], ALPHA) is None


def test_a_gain_has_to_come_from_flips():
    with pytest.raises(ValueError, match="cannot come from"):
        outlook([100], ALPHA, 0.3, share=0.15)
