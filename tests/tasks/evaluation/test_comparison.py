"""Two checkpoints on the same problems: every kind of pair, and the laws of their numbers."""

from math import sqrt

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.evaluation.comparison import compare
from tasks.evaluation.decide import judge_target
from tests.tasks.doubles.exam import compared, evaluations

OUTCOMES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def test_compare_counts_every_kind_of_pair() -> None:
    before, after = [True, True, False, False, False, None, True], [True, False, True, True, False, True, None]
    comparison = compared(before, after)
    assert (comparison.n, comparison.nulls, comparison.gained, comparison.lost) == (5, 2, 2, 1)
    assert (comparison.before.accuracy, comparison.after.accuracy) == (0.4, 0.6)
    assert comparison.difference == pytest.approx(0.2)
    assert (comparison.before_digest, comparison.after_digest) == ("champion", "candidate")


def test_compare_joins_by_problem_and_sample_not_by_position() -> None:
    before, after = evaluations([True, False, False], "a"), evaluations([True, True, False], "b")
    shuffled = compare("target", before, after.iloc[[2, 0, 1]], seed=1)
    assert shuffled == compare("target", before, after, seed=1)
    assert (shuffled.gained, shuffled.lost) == (1, 0)


def test_compare_refuses_what_cannot_be_paired() -> None:
    three, two = evaluations([True] * 3, "a"), evaluations([True] * 2, "b")
    with pytest.raises(ValueError, match="target: the two checkpoints answered different problems"):
        compare("target", three, two, seed=1)
    with pytest.raises(ValueError, match="target: the two checkpoints answered different problems"):
        compare("target", pd.concat([three, three]), three, seed=1)


@given(OUTCOMES)
def test_every_number_is_where_it_must_be(pairs: list[tuple[bool, bool]]) -> None:
    before, after = [list(side) for side in zip(*pairs, strict=True)]
    comparison = compared(before, after)
    assert 0 <= comparison.p_value <= 1
    assert -1 <= comparison.low <= comparison.high <= 1
    assert -1 <= comparison.guard_low <= 1
    assert comparison.before.low <= comparison.before.accuracy <= comparison.before.high
    assert comparison == compared(before, after)


def test_episodes_are_compared_by_what_they_achieved() -> None:
    solved = {"champion": [False] * 5, "candidate": [False] * 4 + [True]}
    before, after = (evaluations(correct, who, "ants-0") for who, correct in solved.items())
    before["value"], after["value"] = [0.0, 0.5, 0.5, 0.25, 0.0], [0.5, 0.5, 0.75, 0.5, 1.0]
    found = compare("ants-0", before, after, seed=1)
    assert (found.gained, found.lost, found.n, found.p_value) == (4, 0, 5, 1 / 16)
    assert found.difference == pytest.approx(0.4)
    # mean 0.4, standard deviation √(0.575 / 4): Student's t of four degrees at 95 %, one-sided
    assert found.guard_low == pytest.approx(0.4 - 2.131847 * sqrt(0.575 / 4 / 5), abs=1e-6)
    assert found.low < 0.4 < found.high
    reason = judge_target(found, 0.1, 5, True)
    assert reason.startswith("ants-0: the candidate reached 0.65 on average in 5 episodes, the champion 0.25")
