"""The curriculum: by hand, and on planted arms, of which some can never be solved and some always are."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rollouts.curriculum import Tried, arm_of, estimates_of, next_arms, weights_of


def test_an_arm_is_a_kind_that_problems_share_or_else_their_level() -> None:
    assert arm_of("arithmetic/1/plus", "arithmetic/1/plus/3 + 4", "arithmetic", "1") == "arithmetic/1/plus"
    assert arm_of("math/12", "math/12", "math", "Level 3") == "math/Level 3"
    assert arm_of("mbpp/12", "mbpp/12", "mbpp", None) == "mbpp"
    assert arm_of("gsm8k/train/0 · hint 0.25", "gsm8k/train/0", "gsm8k", "2") == "gsm8k/2 · hint 0.25"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        # |1 − 0.5|; then a group of three quarters, whose mean distance is 0.375
        ("signal", [0.5, 0.5 + 0.25 * (0.375 - 0.5)]),
        ("solve_rate", [None, None]),
        ("even", [None, None]),
    ],
)
def test_the_estimates_by_hand(choice: str, expected: list[float | None]) -> None:
    arms = next_arms({}, [Tried("a", [0.0, 1.0])], choice, 0.25)
    assert arms == {"a": {"drawn": 1, "signal": 0.5, "estimate": expected[0]}}
    arms = next_arms(arms, [Tried("a", [1, 1, 1, 0])], choice, 0.25)
    assert arms == {"a": {"drawn": 1, "signal": 0.375, "estimate": pytest.approx(expected[1])}}


def test_an_arm_that_is_not_drawn_keeps_what_is_known_and_one_that_no_grader_judged_learns_nothing() -> None:
    first = next_arms({}, [Tried("a", [0.0, 1.0])], "signal", 0.25)
    assert next_arms(first, [Tried("b", [])], "signal", 0.25) == {
        "a": {"drawn": 0, "signal": None, "estimate": 0.5},
        "b": {"drawn": 1, "signal": None, "estimate": None},
    }


def test_estimates_are_not_carried_on_through_another_choice() -> None:
    signal = next_arms({}, [Tried("a", [0.0, 1.0])], "signal", 0.25)
    assert estimates_of(signal) == {"a": 0.5}
    assert estimates_of(next_arms(signal, [Tried("a", [1.0, 1.0])], "even", 0.25)) == {}


@pytest.mark.parametrize("seed", range(5))
def test_planted_arms_starve(seed: int) -> None:
    """Of four arms one is never solved, one always; the others rise as they are drawn. These get the draws."""
    chance, solve = random.Random(seed), {"never": 0.0, "always": 1.0, "slow": 0.1, "fast": 0.1}
    gain = {"never": 0.0, "always": 0.0, "slow": 0.002, "fast": 0.01}
    known: dict[str, dict[str, Any]] = {}
    drawn = dict.fromkeys(solve, 0)
    for number in range(40):
        estimates = estimates_of(known)
        usual = sum(estimates.values()) / len(estimates) if estimates else 0.0
        weights = weights_of([estimates.get(arm, usual) for arm in solve], 0.2)
        arms = chance.choices([*solve], weights, k=16)
        groups = [[float(chance.random() < solve[arm]) for _ in range(8)] for arm in arms]
        known = next_arms(known, [Tried(*group) for group in zip(arms, groups, strict=True)], "signal", 0.3)
        for arm in arms:
            solve[arm] = min(solve[arm] + gain[arm], 0.9 if gain[arm] else 1.0)
            drawn[arm] += number >= 10
    floor = 0.2 / 4
    for arm in ("never", "always"):
        assert drawn[arm] / sum(drawn.values()) < floor + 0.05


def test_weights_by_hand() -> None:
    # p(1 − p): 0.25, 0, 0.09, of 0.34 in all; three kinds share the 0.3 evenly
    assert weights_of([0.25, 0.0, 0.09], 0.3) == pytest.approx([0.7 * 0.25 / 0.34 + 0.1, 0.1, 0.7 * 0.09 / 0.34 + 0.1])
    assert weights_of([0.0, 0.0], 0.3) == [0.5, 0.5]
    assert weights_of([0.0, 0.25], 0.0) == [0.0, 1.0]
    assert weights_of([], 0.3) == []
    assert weights_of([5e-324, 5e-324], 0.3) == [0.5, 0.5]  # no bits to lose


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1))
def test_weights_are_probabilities_with_a_floor(worth: list[float], exploration: float) -> None:
    found = weights_of(worth, exploration)
    assert sum(found) == pytest.approx(1)
    assert min(found) >= exploration / len(worth) - 1e-12
