"""What decides a promotion, and the sentences that say why."""

from dataclasses import replace

import pytest

from tasks.evaluation.comparison import Comparison
from tasks.evaluation.decide import judge_guard, judge_target, refuse_ungraded
from tests.tasks.doubles.exam import compared

MARGIN = 0.05


def flips(gained: int, lost: int, both: int, neither: int, name: str = "target") -> Comparison:
    before = [False] * gained + [True] * lost + [True] * both + [False] * neither
    after = [True] * gained + [False] * lost + [True] * both + [False] * neither
    return compared(before, after, name)


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
        (flips(0, 1, 5, 94), True, "Guard guard: −0.01 (lower bound −0.04; allowed −0.05)."),
        (flips(0, 1, 20, 66), True, "Guard guard: −0.01 (lower bound −0.0499; allowed −0.0500)."),
        (flips(0, 15, 65, 220), False, "Guard guard: −0.05 (lower bound −0.08; allowed −0.05): not passed."),
        (
            flips(6, 8, 30, 56),
            False,
            "Guard guard: −0.02 (lower bound −0.09; allowed −0.05): not passed. With 100 problems, an equally good "
            "candidate would be rejected in 64% of such nights.",
        ),
        (
            flips(0, 0, 3, 97),
            True,
            "Guard guard: no change (lower bound −0.03; allowed −0.05). The champion solves less than the margin, so "
            "this guard can hardly fail.",
        ),
    ],
)
def test_a_guard_is_judged_by_its_bound_and_says_its_worth(guard: Comparison, holds: bool, said: str) -> None:
    assert judge_guard(replace(guard, name="guard"), MARGIN) == (holds, said)


def test_a_guard_of_episodes_says_nothing_of_flips() -> None:
    """How far each went up or down counts, too."""
    part = flips(6, 8, 30, 56, "ants")
    holds, said = judge_guard(replace(part, before=replace(part.before, counted=False)), MARGIN)
    assert (holds, said) == (False, "Guard ants: −0.02 (lower bound −0.09; allowed −0.05): not passed.")


def test_a_guard_against_the_first_student_names_a_champion_that_is_below_it() -> None:
    """Such a champion could be replaced by nobody."""
    candidate, champion = flips(0, 6, 40, 54, "math"), flips(0, 7, 40, 53, "math")
    holds, said = judge_guard(candidate, MARGIN, "the first student", champion)
    assert not holds
    assert said.startswith("Guard math against the first student: −0.06")
    assert "itself is below that margin (−0.07), so only a candidate that makes up for it can be promoted" in said
    sound = flips(0, 1, 40, 59, "math")
    assert "can be promoted" not in judge_guard(candidate, MARGIN, "the first student", sound)[1]


@pytest.mark.parametrize(("nulls", "decides"), [(1, True), (2, False)])
def test_more_than_one_percent_of_nulls_is_no_decision(nulls: int, decides: bool) -> None:
    part = compared([False] * 100, [None] * nulls + [True] * (100 - nulls))
    refusal = "target: the grader failed on 2 of 100 problems, more than 1 %: no decision."
    assert refuse_ungraded(part) == (None if decides else refusal)
    assert judge_guard(part, MARGIN)[0] is decides


def test_an_empty_part_is_no_decision() -> None:
    empty = compared([], [])
    assert (empty.n, empty.p_value) == (0, 1.0)
    assert refuse_ungraded(empty) == "target: no problem was answered: no decision."
    assert not judge_guard(empty, 0.9)[0]
