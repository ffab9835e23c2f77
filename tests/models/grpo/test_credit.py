"""Credit by turn, against numbers worked out by hand and known reductions."""

from typing import Any

import pytest
import torch

from conf.schema import GrpoConfig
from models.advantages import Visit, state_values, td_advantages, turn_advantages

# Two episodes begin in a; the first goes on to b and earns 1, the second to c and earns nothing.
GROUP = [[Visit("a", 0.0), Visit("b", 1.0)], [Visit("a", 0.0), Visit("c", 0.0)]]


def test_a_state_seen_twice_has_its_own_mean_and_others_their_turns() -> None:
    # from a: 0.5 and 0 by γ = 0.5; b and c were seen once, so both have the mean of the second turn, 0.5
    assert state_values(GROUP, 0.5) == [[0.25, 0.5], [0.25, 0.5]]


def test_td_by_hand() -> None:
    # δ of the first episode: 0 + 0.5·0.5 − 0.25 = 0, 1 − 0.5 = 0.5; of the second: 0, −0.5; γλ = 0.4
    assert td_advantages(GROUP, state_values(GROUP, 0.5), 0.5, 0.8) == [
        pytest.approx([0.2, 0.5]),
        pytest.approx([-0.2, -0.5]),
    ]


def test_of_one_turn_all_kinds_are_the_groups_advantages() -> None:
    group = [[Visit("start", reward)] for reward in (1.0, 0.0, 0.5, 0.5)]
    whole = torch.tensor([0.5, -0.5, 0.0, 0.0])
    values = state_values(group, 0.9)

    def advantages(credit: Any) -> list[list[float]]:
        return turn_advantages(group, values, whole, GrpoConfig(credit=credit))

    expected = [[each] for each in whole.tolist()]
    assert advantages("episode") == expected
    assert advantages("td") == expected


def test_the_turn_that_differs_gets_the_credit() -> None:
    """Four episodes through the same corridor: only the door at the end decides, and only it is credited."""
    group = [[Visit(f"corridor {n}", 0.0) for n in range(5)] + [Visit("doors", reward)] for reward in (1, 0, 1, 0)]
    for advantages, reward in zip(td_advantages(group, state_values(group, 1.0), 1.0, 0.0), (1, 0, 1, 0), strict=True):
        assert advantages == pytest.approx([0.0] * 5 + [reward - 0.5])
