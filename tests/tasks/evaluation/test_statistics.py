"""The exam's statistics, against hand-worked numbers, scipy and laws."""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.evaluation.statistics import (
    Accuracy,
    Comparison,
    Decision,
    agresti_min_low,
    bad_luck,
    bootstrap,
    compare,
    detectable,
    difference,
    judge_guard,
    judge_target,
    mcnemar,
    power,
    refuse_ungraded,
    sign_flip,
    smallest_guard,
)
from tests.tasks.doubles.exam import compared, evaluations

OUTCOMES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def flips(gained: int, lost: int, both: int, neither: int, name: str = "target") -> Comparison:
    before = [False] * gained + [True] * lost + [True] * both + [False] * neither
    after = [True] * gained + [False] * lost + [True] * both + [False] * neither
    return compared(before, after, name)


def guarded(guard: Comparison, margin: float = 0.05, **options: Any) -> tuple[bool, str]:
    """Whether a guard holds, and the sentence on it."""
    decision = judge_guard(Decision(True, ()), guard, margin, **options)
    return decision.promote, decision.reasons[-1]


# McNemar by hand: of 8 flips 7 gained: (8 + 1) / 256. Of 6 flips 6 gained: 1 / 64. Of 5, 5: 1 / 32.
@pytest.mark.parametrize(
    ("gained", "lost", "p_value"),
    [(7, 1, 9 / 256), (6, 0, 1 / 64), (5, 0, 1 / 32), (0, 3, 1.0), (0, 0, 1.0), (2, 2, 11 / 16)],
)
def test_mcnemar_by_hand(gained: int, lost: int, p_value: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx(p_value, rel=1e-12)


def test_agresti_min_by_hand() -> None:
    # 98 problems, 9 gained, 4 lost: (9.5 − 4.5) / 100 − 1.644854 √(14 − 25 / 100) / 100
    assert agresti_min_low(9, 4, 98) == pytest.approx(0.05 - 1.644854 * sqrt(13.75) / 100, abs=1e-7)
    assert agresti_min_low(0, 0, 98) == pytest.approx(-0.01644854, abs=1e-7)
    assert agresti_min_low(0, 98, 98) >= -1.0


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


def test_bootstrap_agrees_with_resampling_the_pairs_themselves() -> None:
    differences = np.array([1] * 30 + [-1] * 10 + [0] * 60)
    resampled = np.random.default_rng(5).choice(differences, (20_000, 100)).mean(axis=1)
    low, high = bootstrap(30, 10, 100, samples=20_000, seed=1)
    assert [low, high] == pytest.approx(np.quantile(resampled, [0.025, 0.975]), abs=0.011)
    assert bootstrap(0, 0, 100, samples=1000, seed=1) == (0.0, 0.0)


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05, 0.1, 0.5, 0.9])
def test_smallest_guard_is_the_first_that_passes(margin: float) -> None:
    least = smallest_guard(margin)
    assert agresti_min_low(0, 0, least) > -margin
    assert least == 1 or agresti_min_low(0, 0, least - 1) <= -margin


@pytest.mark.parametrize(("n", "margin", "share"), [(100, 0.05, 0.1), (250, 0.05, 0.1), (400, 0.1, 0.3)])
def test_bad_luck_is_that_of_nights_in_which_nothing_got_worse(n: int, margin: float, share: float) -> None:
    drawn = np.random.default_rng(3).multinomial(n, [share / 2, share / 2, 1 - share], size=4000)
    refused = np.mean([agresti_min_low(int(gained), int(lost), n) <= -margin for gained, lost, _ in drawn])
    assert bad_luck(n, margin, share) == pytest.approx(refused, abs=0.05)


def test_detectable_has_the_power_it_claims() -> None:
    difference = detectable(80, 400, 0.025)
    assert difference is not None
    drawn = np.random.default_rng(3).multinomial(400, [0.1 + difference / 2, 0.1 - difference / 2, 0.8], size=20_000)
    needed = np.array([0, *(binom.isf(0.025, np.arange(1, 401), 0.5) + 1)])
    found = drawn[:, 0] >= needed[drawn[:, 0] + drawn[:, 1]]
    assert found[drawn[:, 0] + drawn[:, 1] > 0].mean() == pytest.approx(0.8, abs=0.01)


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


def test_detectable_where_hardly_anything_flips_or_nothing_can_be_found() -> None:
    nothing_flipped = detectable(0, 400, 0.025)
    # at least 6 flips in 400 with probability 0.8
    assert nothing_flipped is not None
    assert binom.sf(5, 400, nothing_flipped) == pytest.approx(0.8, abs=1e-3)
    assert detectable(0, 5, 0.025) is None
    assert detectable(0, 0, 0.025) is None


def test_compare_counts_every_kind_of_pair() -> None:
    comparison = compared([True, True, False, False, None, True], [True, False, True, False, True, None])
    assert (comparison.n, comparison.nulls, comparison.gained, comparison.lost) == (4, 2, 1, 1)
    assert (comparison.before.accuracy, comparison.after.accuracy, comparison.difference) == (0.5, 0.5, 0.0)
    assert (comparison.before_digest, comparison.after_digest) == ("champion", "candidate")


def test_compare_joins_by_problem_and_sample_not_by_position() -> None:
    before, after = evaluations([True, False, False], "a"), evaluations([True, True, False], "b")
    shuffled = compare("target", before, after.iloc[[2, 0, 1]], samples=1000, seed=1)
    assert shuffled == compare("target", before, after, samples=1000, seed=1)
    assert (shuffled.gained, shuffled.lost) == (1, 0)


def test_compare_refuses_what_cannot_be_paired() -> None:
    three, two = evaluations([True] * 3, "a"), evaluations([True] * 2, "b")
    with pytest.raises(ValueError, match="different problems"):
        compare("target", three, two, samples=1000, seed=1)
    with pytest.raises(ValueError, match="different problems"):
        compare("target", pd.concat([three, three]), three, samples=1000, seed=1)


def test_difference_is_what_compare_finds() -> None:
    before, after = evaluations([True, True, False, None], "a"), evaluations([True, False, True, True], "b")
    found, compared_ = difference("target", before, after), compare("target", before, after, samples=1000, seed=1)
    expected = (compared_.n, compared_.gained, compared_.lost, compared_.difference, compared_.p_value)
    assert (found.n, found.gained, found.lost, found.mean, found.p_value) == expected
    assert difference("target", before[:0], after[:0]).p_value == 1.0


def test_the_sentence_on_the_target_has_its_numbers() -> None:
    better = judge_target(flips(244, 4, 4, 148), 0.0053, 868, True)
    assert better.startswith(
        "target: the candidate solved 248 of 400 (62.0 %), the champion 8 of 400 (2.0 %): +0.60, 95 % interval +0.55 to"
    )
    assert better.endswith("; p < 0.0001, at most this look's level 0.0053 (400 of at most 868 problems).")
    kept = judge_target(flips(5, 0, 5, 10), 0.025, 20, False)
    assert kept.endswith(
        "; p = 0.0312, above this look's level 0.025 (20 of at most 20 problems): not enough to promote."
    )


@pytest.mark.parametrize(
    ("guard", "holds", "said"),
    [
        # (0.5 − 1.5) / 102 − 1.644854 √(2 − 1 / 102) / 102 = −0.03255
        (flips(0, 1, 5, 94), True, "Guard guard: −0.01 (lower bound −0.03; allowed −0.05)."),
        (
            flips(0, 0, 0, 100),
            True,
            "Guard guard: no change (lower bound −0.02; allowed −0.05). The champion solved none, so this guard could "
            "not fail.",
        ),
        # of 100, 3 lost: (0.5 − 3.5) / 102 − 1.644854 √(4 − 9 / 102) / 102 = −0.0613; 2 lost: −0.0473
        (flips(0, 2, 20, 78), True, "Guard guard: −0.02 (lower bound −0.0474; allowed −0.0500)."),
        (flips(0, 3, 20, 77), False, "Guard guard: −0.03 (lower bound −0.06; allowed −0.05): not passed."),
        (
            flips(6, 8, 30, 56),
            False,
            "Guard guard: −0.02 (lower bound −0.08; allowed −0.05): not passed. With 100 problems, this refuses a "
            "candidate that is no worse in 62% of such nights.",
        ),
        (
            flips(0, 0, 3, 97),
            True,
            "Guard guard: no change (lower bound −0.02; allowed −0.05). The champion solves less than the margin, so "
            "this guard can hardly fail.",
        ),
    ],
)
def test_a_guard_is_judged_by_its_lower_bound_and_says_what_it_is_worth(
    guard: Comparison, holds: bool, said: str
) -> None:
    found = guarded(replace(guard, name="guard"))
    assert found[0] is holds
    assert found[1] == said
    assert not judge_guard(Decision(False, ("Kept.",)), guard, 0.05).promote


def test_a_guard_against_the_first_student_names_a_champion_that_is_below_it() -> None:
    """Such a champion could be replaced by nobody."""
    candidate, champion = flips(0, 6, 40, 54, "math"), flips(0, 7, 40, 53, "math")
    holds, said = guarded(candidate, than="the first student", champion=champion)
    assert not holds
    assert said.startswith("Guard math against the first student: −0.06")
    assert "The champion itself is below that margin (−0.07), so nothing can be promoted" in said
    sound = flips(0, 1, 40, 59, "math")
    assert "nothing can be promoted" not in guarded(candidate, than="the first student", champion=sound)[1]


@pytest.mark.parametrize(("nulls", "decides"), [(1, True), (2, False)])
def test_more_than_one_percent_of_nulls_is_no_decision(nulls: int, decides: bool) -> None:
    part = compared([False] * 100, [None] * nulls + [True] * (100 - nulls))
    refusal = "target: the grader failed on 2 of 100 problems, more than 1 %: no decision."
    assert refuse_ungraded(part) == (None if decides else refusal)
    assert guarded(part)[0] is decides


def test_an_empty_part_is_no_decision() -> None:
    empty = compared([], [])
    assert (empty.n, empty.p_value, empty.detectable) == (0, 1.0, None)
    assert refuse_ungraded(empty) == "target: no problem was answered: no decision."
    assert not guarded(empty, 0.9)[0]


@given(OUTCOMES)
def test_swapping_the_checkpoints_flips_the_difference(pairs: list[tuple[bool, bool]]) -> None:
    before, after = [list(side) for side in zip(*pairs, strict=True)]
    there, back = compared(before, after), compared(after, before)
    assert there.difference == -back.difference
    assert (there.gained, there.lost, there.before) == (back.lost, back.gained, back.after)
    assert there.detectable == back.detectable


@given(OUTCOMES, st.booleans())
def test_a_problem_that_both_solve_or_both_miss_never_changes_the_sign(
    pairs: list[tuple[bool, bool]], alike: bool
) -> None:
    before, after = [list(side) for side in zip(*pairs, strict=True)]
    without, with_it = compared(before, after), compared([*before, alike], [*after, alike])
    assert np.sign(without.difference) == np.sign(with_it.difference)
    assert without.p_value == with_it.p_value


@given(OUTCOMES, st.floats(0.001, 0.2))
def test_every_number_is_where_it_must_be(pairs: list[tuple[bool, bool]], alpha: float) -> None:
    before, after = [list(side) for side in zip(*pairs, strict=True)]
    comparison = compared(before, after, alpha=alpha)
    assert 0 <= comparison.p_value <= 1
    assert -1 <= comparison.low <= comparison.high <= 1
    assert -1 <= comparison.guard_low <= 1
    assert comparison.before.low <= comparison.before.accuracy <= comparison.before.high
    assert comparison.detectable is None or 0 < comparison.detectable <= 1
    assert comparison == compared(before, after, alpha=alpha)


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


def test_episodes_are_compared_by_what_they_achieved() -> None:
    before, after = evaluations([False] * 5, "champion"), evaluations([False] * 4 + [True], "candidate")
    before["value"], after["value"] = [0.0, 0.5, 0.5, 0.25, 0.0], [0.5, 0.5, 0.75, 0.5, 1.0]
    found = compare("ants-0", before, after, samples=2000, seed=1)
    assert (found.gained, found.lost, found.n, found.p_value) == (4, 0, 5, 1 / 16)
    assert found.difference == pytest.approx(0.4)
    # mean 0.4, standard deviation √(0.575 / 4): Student's t of four degrees at 95 %, one-sided
    assert found.guard_low == pytest.approx(0.4 - 2.131847 * sqrt(0.575 / 4 / 5), abs=1e-6)
    assert found.low < 0.4 < found.high
    reason = judge_target(found, 0.1, 5, True)
    assert reason.startswith("ants-0: the candidate reached 0.65 on average in 5 episodes, the champion 0.25")
