"""The curriculum: by hand, and on planted arms, of which some can never be solved and some always are."""

import random
from typing import Any

import pytest

from tasks.rollouts.curriculum import Tried, arm_of, estimates_of, follow, next_arms, weights_of


def test_an_arm_is_a_kind_that_problems_share_or_else_their_level() -> None:
    assert arm_of("arithmetic/1/plus", "arithmetic/1/plus/3 + 4", "arithmetic", "1") == "arithmetic/1/plus"
    assert arm_of("math/12", "math/12", "math", "Level 3") == "math/Level 3"
    assert arm_of("mbpp/12", "mbpp/12", "mbpp", None) == "mbpp"


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
    rows = next_arms([], [Tried("a", [0.0, 1.0], [0.0, 1.0], 100)], {"a": 1.0}, choice, 0.25)
    assert [rows[0]["estimate"]] == [expected[0]]
    rows = next_arms(rows, [Tried("a", [1, 1, 1, 0], [1, 1, 1, 0], 500)], {"a": 1.0}, choice, 0.25)
    assert [rows[0]["estimate"]] == [pytest.approx(expected[1])]
    assert rows[0] == rows[0] | {"arm": "a", "drawn": 1, "tokens": 500, "signal": 0.375, "solved": 0.75}


def test_an_arm_that_is_not_drawn_keeps_what_is_known_and_one_that_no_grader_judged_learns_nothing() -> None:
    first = next_arms([], [Tried("a", [0.0, 1.0], [0.0, 1.0], 100)], {"a": 1.0}, "signal", 0.25)
    rows = next_arms(first, [Tried("b", [], [], 40)], {"b": 1.0}, "signal", 0.25)
    assert rows == [
        first[0] | {"drawn": 0, "tokens": 0, "signal": None, "probability": None},
        {"arm": "b", "choice": "signal", "drawn": 1, "tokens": 40, "probability": 1.0}
        | {"signal": None, "solved": None, "estimate": None},
    ]


def test_estimates_of_another_choice_are_not_carried_on() -> None:
    signal = next_arms([], [Tried("a", [0.0, 1.0], [0.0, 1.0], 100)], {}, "signal", 0.25)
    assert estimates_of(signal, "signal") == {"a": 0.5}
    assert estimates_of(signal, "even") == {}
    moved = next_arms(signal, [Tried("a", [1.0, 1.0], [1.0, 1.0], 1000)], {}, "even", 0.25)
    assert moved[0]["estimate"] is None


@pytest.mark.parametrize("seed", range(5))
def test_planted_arms_starve(seed: int) -> None:
    """Of four arms one is never solved, one always; the others rise as they are drawn. These get the draws."""
    chance, solve = random.Random(seed), {"never": 0.0, "always": 1.0, "slow": 0.1, "fast": 0.1}
    gain = {"never": 0.0, "always": 0.0, "slow": 0.002, "fast": 0.01}
    rows: list[dict[str, Any]] = []
    choice = "signal"
    drawn = dict.fromkeys(solve, 0)
    for number in range(40):
        weights = weights_of([*solve], estimates_of(rows, choice), 0.2)
        arms = chance.choices([*solve], weights, k=16)
        groups = [[float(chance.random() < solve[arm]) for _ in range(8)] for arm in arms]
        tried = [Tried(arm, group, group, 80) for arm, group in zip(arms, groups, strict=True)]
        rows = next_arms(rows, tried, dict(zip(solve, weights, strict=True)), choice, 0.3)
        for arm in arms:
            solve[arm] = min(solve[arm] + gain[arm], 0.9 if gain[arm] else 1.0)
            drawn[arm] += number >= 10
    floor = 0.2 / 4
    for arm in ("never", "always"):
        assert drawn[arm] / sum(drawn.values()) < floor + 0.05


def test_weights_by_hand() -> None:
    assert weights_of(["a", "b"], {"a": 0.3, "b": 0.1}, 0.2) == [pytest.approx(0.7), pytest.approx(0.3)]
    assert weights_of(["a", "new"], {"a": 0.3}, 0.0) == [0.5, 0.5]  # an arm never tried has the mean of the others
    assert weights_of(["a", "b"], {"a": 0.0, "b": 0.0}, 0.2) == [0.5, 0.5]
    assert weights_of(["a", "b"], {}, 0.2) == [0.5, 0.5]


def test_an_estimate_begins_with_what_is_seen_first_and_moves_by_its_rate() -> None:
    assert follow(None, 0.4, 0.1) == 0.4
    assert follow(0.4, 1.0, 0.25) == pytest.approx(0.55)
