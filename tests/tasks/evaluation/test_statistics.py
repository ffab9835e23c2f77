"""The exam's statistics, against hand-worked numbers, scipy and laws."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tasks.evaluation.statistics import (
    Accuracy,
    Comparison,
    Part,
    agresti_min_low,
    bad_luck,
    bootstrap,
    compare,
    decide,
    detectable,
    holm,
    mcnemar,
    sign_flip,
    smallest_guard,
)
from tests.tasks.doubles.exam import compared, evaluations

OUTCOMES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def flips(gained: int, lost: int, both: int, neither: int, name: str = "target") -> Comparison:
    before = [False] * gained + [True] * lost + [True] * both + [False] * neither
    after = [True] * gained + [False] * lost + [True] * both + [False] * neither
    return compared(before, after, name)


def alone(target: Comparison) -> list[Part]:
    """The exam's only target; its margin does not matter then."""
    return [(target, 0.05)]


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
    with pytest.raises(ValueError, match="target: the two checkpoints answered different problems"):
        compare("target", three, two, samples=1000, seed=1)
    with pytest.raises(ValueError, match="target: the two checkpoints answered different problems"):
        compare("target", pd.concat([three, three]), three, samples=1000, seed=1)


def test_a_clear_gain_is_promoted_with_its_numbers() -> None:
    guards = [(flips(0, 1, 5, 94, "arithmetic-3"), 0.05), (flips(0, 0, 0, 100, "arithmetic-5"), 0.05)]
    decision = decide(alone(flips(244, 4, 4, 148)), guards, 0.025)
    assert decision.promote
    assert decision.reasons[0].startswith(
        "target: the candidate solved 248 of 400 (62.0 %), the champion 8 of 400 (2.0 %): +0.60, 95 % interval +0.55 to"
    )
    assert decision.reasons[0].endswith("; p < 0.0001 at α = 0.025.")
    assert decision.reasons[1:] == (
        # (0.5 − 1.5) / 102 − 1.644854 √(2 − 1 / 102) / 102 = −0.03255
        "Guard arithmetic-3: −0.01 (lower bound −0.03; allowed −0.05).",
        "Guard arithmetic-5: no change (lower bound −0.02; allowed −0.05). The champion solved none, so this guard "
        "could not fail.",
    )


def test_no_promotion_without_significance() -> None:
    decision = decide(alone(flips(5, 0, 5, 10)), [], 0.025)
    assert not decision.promote
    assert "p = 0.0312 at α = 0.025: not enough to promote. This exam detects a true gain of 0." in decision.reasons[0]
    assert decide(alone(flips(6, 0, 5, 10)), [], 0.025).promote
    assert decide(alone(flips(6, 0, 5, 10)), [], 1 / 64).promote  # p = α is enough


def test_a_guard_that_refuses_by_bad_luck_says_so() -> None:
    _, few_flips = decide(alone(flips(30, 0, 5, 10)), [(flips(6, 8, 30, 56, "math"), 0.05)], 0.025).reasons
    assert few_flips.endswith(
        "not passed. With 100 problems, this refuses a candidate that is no worse in 62% of such nights."
    )
    _, low = decide(alone(flips(30, 0, 5, 10)), [(flips(0, 0, 3, 97, "math"), 0.05)], 0.025).reasons
    assert low.endswith("The champion solves less than the margin, so this guard can hardly fail.")


def test_a_guard_is_judged_by_its_lower_bound_not_by_its_difference() -> None:
    # of 100, 3 lost: (0.5 − 3.5) / 102 − 1.644854 √(4 − 9 / 102) / 102 = −0.0613; 2 lost: −0.0473
    target = flips(100, 0, 0, 100)
    refused = decide(alone(target), [(flips(0, 3, 20, 77, "arithmetic-3"), 0.05)], 0.025)
    assert not refused.promote
    assert refused.reasons[1] == "Guard arithmetic-3: −0.03 (lower bound −0.06; allowed −0.05): not passed."
    assert decide(alone(target), [(flips(0, 2, 20, 78, "arithmetic-3"), 0.05)], 0.025).promote


@pytest.mark.parametrize(("nulls", "promoted"), [(1, True), (2, False)])
def test_more_than_one_percent_of_nulls_is_no_decision(nulls: int, promoted: bool) -> None:
    target = compared([False] * 100, [None] * nulls + [True] * (100 - nulls))
    guard = compared([True] * 100, [None] * nulls + [True] * (100 - nulls), "guard")
    assert decide(alone(target), [], 0.025).promote is promoted
    assert decide(alone(flips(20, 0, 0, 0)), [(guard, 0.05)], 0.025).promote is promoted
    if not promoted:
        assert decide(alone(target), [], 0.025).reasons == (
            "target: the grader failed on 2 of 100 problems, more than 1 %: no decision.",
        )


def test_an_empty_part_is_no_decision() -> None:
    empty = compared([], [])
    assert (empty.n, empty.p_value, empty.detectable) == (0, 1.0, None)
    assert decide(alone(empty), [], 0.025).reasons == ("target: no problem was answered: no decision.",)
    assert not decide(alone(flips(20, 0, 0, 0)), [(empty, 0.9)], 0.025).promote


def test_the_champion_itself_is_never_promoted() -> None:
    same = replace(flips(20, 0, 0, 0), after_digest="champion")
    decision = decide(alone(same), [], 0.025)
    assert not decision.promote
    assert decision.reasons == ("Candidate and champion are the same checkpoint (champion).",)


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
    assert decide(alone(comparison), [], alpha) == decide(alone(comparison), [], alpha)


def test_holm_by_hand() -> None:
    # of three, the smallest counts three times, the next twice, the last once, and none less than one before it
    assert holm([0.02, 0.01, 0.025]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.6]) == pytest.approx([1.0, 1.0])
    assert holm([0.017]) == [0.017]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.001, 0.3))
def test_holm_rejects_what_his_steps_reject(p_values: list[float], alpha: float) -> None:
    """The procedure as Holm wrote it: from the smallest on, at α / (those that are left), until one is not rejected."""
    left, rejected = sorted(range(len(p_values)), key=lambda place: p_values[place]), set[int]()
    while left and p_values[left[0]] * len(left) <= alpha:
        rejected.add(left.pop(0))
    assert {place for place, adjusted in enumerate(holm(p_values)) if adjusted <= alpha} == rejected


def test_of_several_targets_one_is_enough_if_the_others_hold_their_margins() -> None:
    better, same, worse = flips(20, 0, 40, 40, "better"), flips(5, 5, 45, 45, "same"), flips(0, 9, 41, 50, "worse")
    decision = decide([(same, 0.1), (better, 0.1)], [], 0.025)
    assert decision.promote
    assert decision.reasons[0].startswith("Guard same: no change (lower bound −0.05; allowed −0.10).")
    assert decision.reasons[1].startswith("better: the candidate solved 60 of 100 (60.0 %), the champion 40 of 100")
    refused = decide([(better, 0.1), (worse, 0.1)], [], 0.025)
    assert not refused.promote
    assert refused.reasons[1] == "Guard worse: −0.09 (lower bound −0.14; allowed −0.10): not passed."


def test_several_targets_share_alpha() -> None:
    """p = 1/64 = 0.0156 is enough for one target of one; of two, by Holm, it counts twice."""
    barely, same = flips(6, 0, 47, 47, "barely"), flips(0, 0, 50, 50, "same")
    assert decide(alone(barely), [], 0.025).promote
    decision = decide([(barely, 0.1), (same, 0.1)], [], 0.025)
    assert not decision.promote
    assert "p = 0.0156, p = 0.0312 by Holm's procedure at α = 0.025: not enough to promote" in decision.reasons[0]
    assert "not enough to promote" in decision.reasons[1]


def test_a_target_that_could_not_be_graded_is_no_decision_whatever_the_other_shows() -> None:
    ungraded = compared([False] * 100, [None] * 2 + [True] * 98, "ungraded")
    decision = decide([(flips(20, 0, 40, 40), 0.1), (ungraded, 0.1)], [], 0.025)
    assert not decision.promote
    assert decision.reasons[1] == "ungraded: the grader failed on 2 of 100 problems, more than 1 %: no decision."


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
    (reason,) = decide([(found, 0.05)], [], 0.1).reasons
    assert reason.startswith("ants-0: the candidate reached 0.65 on average in 5 episodes, the champion 0.25")
