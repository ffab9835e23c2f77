"""Group-relative advantages: laws, and against TRL; and rewards near the length limit."""

import math
from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conf.schema import GrpoConfig
from models.advantages import group_advantages, most_varied, overlong_rewards
from tests.models.support.trl_grpo import trl_advantages

REWARDS = st.floats(-10, 10, width=32, allow_subnormal=False)


@st.composite
def reward_tables(draw: st.DrawFn) -> torch.Tensor:
    size = draw(st.integers(2, 6))
    values = st.lists(st.one_of(REWARDS, st.just(math.nan)), min_size=size, max_size=size)
    return torch.tensor(draw(st.lists(values, min_size=1, max_size=4)))


def test_equal_rewards_whose_mean_is_rounded() -> None:
    """The sum of 0.7 seven times, divided by seven, is not 0.7 in fp32; the nulls beside them change nothing."""
    rewards = torch.tensor([[0.7, math.nan, *[0.7] * 6], [0.7] * 8])
    for scale in ("none", "std"):
        assert not group_advantages(rewards, scale).nan_to_num(0.0).any()
        assert not group_advantages(-rewards, scale).nan_to_num(0.0).any()


@given(reward_tables(), st.data())
def test_a_null_is_as_if_it_had_not_been_sampled(rewards: torch.Tensor, data: st.DataObject) -> None:
    """For its own group; the other groups do not change by a bit."""
    group = data.draw(st.integers(0, len(rewards) - 1))
    sample = data.draw(st.integers(0, rewards.shape[1] - 1))
    nulled = rewards.clone()
    nulled[group, sample] = math.nan
    rest = [place for place in range(rewards.shape[1]) if place != sample]
    for scale in ("none", "std"):
        before, after = group_advantages(rewards, scale), group_advantages(nulled, scale)
        others = [row for row in range(len(rewards)) if row != group]
        torch.testing.assert_close(after[others], before[others], equal_nan=True, atol=0, rtol=0)
        without = group_advantages(rewards[group : group + 1, rest], scale)
        torch.testing.assert_close(after[group : group + 1, rest], without, equal_nan=True, atol=1e-5, rtol=1e-4)
        assert after[group, sample].isnan()


# --- published implementations


@pytest.mark.parametrize(("scale", "theirs"), [("none", "none"), ("std", "group")])
def test_as_trl_computes_them(scale: Any, theirs: str) -> None:
    """TRL gives 0 where we give NaN, the completion not graded, which then is left out of the denominator as well."""

    @given(reward_tables())
    def compare(rewards: torch.Tensor) -> None:
        rewards = rewards.double()
        found = group_advantages(rewards, scale)
        assert found.isnan().equal(rewards.isnan())
        expected = trl_advantages(rewards, theirs)
        torch.testing.assert_close(found.nan_to_num(0.0), expected, atol=1e-5, rtol=1e-5)

    compare()


# --- which completions are trained on


@pytest.mark.parametrize(
    ("rewards", "kept"),
    [
        ([0, 1, 0, 1, 0, 0, 1, 0], [0, 1, 2, 3]),  # two best and two worst, of equals the first
        ([1, 1, 0, 1, 1, 1, 1, 0], [0, 1, 2, 7]),
        ([0, 0, 0, 0, 0, 0, 1, 0], [0, 1, 2, 6]),
        ([1] * 8, [0, 1, 2, 3]),
        ([0.2, 0.9, 0.5, 0.1, 1.0, 0.4, 0.3, 0.6], [0, 1, 3, 4]),
        ([math.nan, math.nan, 0, math.nan, 1, math.nan, math.nan, math.nan], [0, 1, 2, 4]),
    ],
)
def test_the_most_varied_by_hand(rewards: list[float], kept: list[int]) -> None:
    assert most_varied(torch.tensor([rewards]), 4)[0].nonzero().flatten().tolist() == kept


@given(reward_tables(), st.data())
def test_no_other_choice_varies_more(rewards: torch.Tensor, data: st.DataObject) -> None:
    """Of every group exactly as many as were asked for; one that was not graded only where too few were."""
    keep = data.draw(st.integers(1, rewards.shape[1]))
    for group, kept in zip(rewards.double(), most_varied(rewards, keep), strict=True):
        graded = group[~group.isnan()]
        assert kept.sum() == keep
        assert (kept & ~group.isnan()).sum() == min(keep, len(graded))
        if len(graded) > keep:
            others = [float(graded[list(some)].var(correction=0)) for some in combinations(range(len(graded)), keep)]
            assert float(group[kept].var(correction=0)) == pytest.approx(max(others), rel=1e-9, abs=1e-12)


def test_more_than_a_group_has_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="3 cannot be kept"):
        most_varied(torch.zeros(1, 2), 3)


# --- completions that reach the length limit


def overlong(rewards: list[float], lengths: list[int], cut: list[bool], **settings: Any) -> list[float]:
    config = GrpoConfig(max_completion_tokens=100, **settings)
    found = overlong_rewards(torch.tensor([rewards]), torch.tensor([lengths]), torch.tensor([cut]), config)
    return found[0].tolist()


def test_a_masked_completion_leaves_the_baseline() -> None:
    found = overlong([1.0, 0.0, 0.0, math.nan], [100, 100, 3, 3], [True, False, False, False], overlong="mask")
    assert found[1:3] == [0.0, 0.0]
    assert math.isnan(found[0])
    assert math.isnan(found[3])
    assert group_advantages(torch.tensor([found])).nan_to_num(0.0).tolist() == [[0.0] * 4]  # no signal is left


def test_the_penalty_grows_over_the_last_tokens() -> None:
    """L_max 100, L_cache 20: nothing up to 80 tokens, half of it at 90, all of it at 100 and where it was cut."""
    lengths = [1, 80, 81, 90, 100, 100, 60]
    cut = [False, False, False, False, False, True, True]
    expected = [1.0, 1.0, 0.95, 0.5, 0.0, 0.0, 0.0]
    assert overlong([1.0] * 7, lengths, cut, overlong="shape") == pytest.approx(expected)
    assert math.isnan(overlong([math.nan], [100], [True], overlong="shape")[0])
