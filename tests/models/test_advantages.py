"""Group-relative advantages: by hand, against torch, and what a null or a rounded mean must not do."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.advantages import group_advantages

REWARDS = st.floats(-10, 10, width=32, allow_subnormal=False)


@st.composite
def reward_tables(draw: st.DrawFn) -> torch.Tensor:
    size = draw(st.integers(2, 6))
    values = st.lists(st.one_of(REWARDS, st.just(math.nan)), min_size=size, max_size=size)
    return torch.tensor(draw(st.lists(values, min_size=1, max_size=4)))


def test_by_hand() -> None:
    found = group_advantages(torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]))
    assert found.tolist() == [[0.75, -0.25, -0.25, -0.25], [0.5, 0.5, -0.5, -0.5]]


def test_scaled_by_the_deviation_of_the_sample() -> None:
    # mean 2, deviation sqrt((1 + 1) / 1) = sqrt 2
    found = group_advantages(torch.tensor([[1.0, 3.0]]), "std", epsilon=0.0)
    assert found[0].tolist() == pytest.approx([-1 / math.sqrt(2), 1 / math.sqrt(2)])
    found = group_advantages(torch.tensor([[1.0, 3.0]]), "std", epsilon=1.0)
    assert found[0].tolist() == pytest.approx([-1 / (math.sqrt(2) + 1), 1 / (math.sqrt(2) + 1)])


def test_a_null_takes_no_part_in_the_baseline() -> None:
    found = group_advantages(torch.tensor([[1.0, math.nan, 0.0, math.nan]]))
    assert found[0, [0, 2]].tolist() == [0.5, -0.5]
    assert found[0, [1, 3]].isnan().all()


@pytest.mark.parametrize("scale", ["none", "std"])
def test_alone_in_its_group(scale: str) -> None:
    found = group_advantages(torch.tensor([[math.nan, 7.0], [math.nan, math.nan]]), scale)  # pyright: ignore
    assert found[0, 1] == 0.0
    assert found.isnan().tolist() == [[True, False], [True, True]]


@given(REWARDS, st.integers(1, 64), st.sampled_from(["none", "std"]))
@settings(deadline=None)
def test_equal_rewards_are_exactly_no_signal(reward: float, size: int, scale: str) -> None:
    assert group_advantages(torch.full((1, size), reward), scale).tolist() == [[0.0] * size]  # pyright: ignore


def test_equal_rewards_whose_mean_is_rounded() -> None:
    """The sum of 0.7 five times, divided by five, is not 0.7 in fp32; the nulls beside them change nothing."""
    rewards = torch.tensor([[0.7, 0.7, math.nan, 0.7, 0.7, 0.7], [0.1] * 6])
    for scale in ("none", "std"):
        assert not group_advantages(rewards, scale).nan_to_num(0.0).any()


@given(reward_tables())
@settings(deadline=None)
def test_as_torch_computes_each_group(rewards: torch.Tensor) -> None:
    plain, scaled = group_advantages(rewards), group_advantages(rewards, "std")
    for group, centred, divided in zip(rewards, plain, scaled, strict=True):
        graded = ~group.isnan()
        assert centred.isnan().equal(~graded)
        assert divided.isnan().equal(~graded)
        known = group[graded].double()
        if len(known) < 2 or (known == known[0]).all():
            continue
        expected = known - known.mean()
        torch.testing.assert_close(centred[graded].double(), expected, atol=1e-5, rtol=1e-5)
        expected = expected / (known.std() + 1e-4)
        torch.testing.assert_close(divided[graded].double(), expected, atol=1e-2, rtol=1e-3)


@given(reward_tables(), st.randoms())
@settings(deadline=None)
def test_neither_order_nor_the_other_groups_matter(rewards: torch.Tensor, chance: object) -> None:
    order = torch.arange(rewards.shape[1]).tolist()
    chance.shuffle(order)  # pyright: ignore[reportAttributeAccessIssue]
    found = group_advantages(rewards)
    shuffled = group_advantages(rewards[:, order])
    torch.testing.assert_close(shuffled, found[:, order], equal_nan=True, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(group_advantages(rewards[:1]), found[:1], equal_nan=True, atol=0, rtol=0)
