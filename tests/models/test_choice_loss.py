"""The loss of a choice: by hand, against TRL for two answers, and the laws that it obeys."""

import math
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from trl import RewardTrainer

from models.reward_model import choice_loss

NOT_SHOWN = float("-inf")
REWARDS = st.lists(st.floats(-20, 20), min_size=2, max_size=6)


def loss(rewards: list[list[float]], chosen: list[int], **others: Any) -> float:
    return float(choice_loss(torch.tensor(rewards, dtype=torch.float64), torch.tensor(chosen), **others))


def test_by_hand() -> None:
    # softmax of (ln 1, ln 2, ln 5) is (1/8, 2/8, 5/8); of equal rewards 1/3 each
    rewards = [[0.0, math.log(2), math.log(5)], [2.0, 2.0, 2.0]]
    assert loss(rewards, [1, 0], centering=0.0) == pytest.approx((math.log(4) + math.log(3)) / 2)
    means = [(math.log(2) + math.log(5)) / 3, 2.0]
    centred = 0.1 * (means[0] ** 2 + means[1] ** 2) / 2
    assert loss(rewards, [1, 0], centering=0.1) == pytest.approx((math.log(4) + math.log(3)) / 2 + centred)


def test_what_was_not_shown_takes_no_part() -> None:
    short = loss([[1.0, 3.0]], [0], centering=0.5)
    assert loss([[1.0, NOT_SHOWN, 3.0]], [0], centering=0.5) == pytest.approx(short)
    rewards = torch.tensor([[1.0, NOT_SHOWN, 3.0]], requires_grad=True)
    choice_loss(rewards, torch.tensor([0]), 0.5).backward()
    assert rewards.grad is not None
    assert rewards.grad[0, 1] == 0
    assert rewards.grad.isfinite().all()


def test_weights_count_picks() -> None:
    rewards, chosen = [[0.0, 1.0], [2.0, 0.0]], [0, 0]
    first, second = loss(rewards[:1], [0]), loss(rewards[1:], [0])
    weights = torch.tensor([0.5, 1.5], dtype=torch.float64)
    assert loss(rewards, chosen, weights=weights) == pytest.approx((0.5 * first + 1.5 * second) / 2)


@pytest.mark.parametrize("chosen", [1, 2])
def test_what_was_not_shown_cannot_have_been_chosen(chosen: int) -> None:
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        loss([[1.0, NOT_SHOWN]], [chosen])


@pytest.mark.parametrize("coefficient", [None, 0.04])
def test_two_answers_are_trls_reward_loss(coefficient: float | None) -> None:
    """TRL's centering is that of the sum of both rewards, ours of their mean: four times as much."""
    chosen, rejected = torch.randn(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    own = choice_loss(torch.stack([rejected, chosen], dim=1), torch.ones(7, dtype=torch.long), 4 * (coefficient or 0.0))
    assert float(own) == pytest.approx(float(trl_loss(chosen, rejected, coefficient)))


def trl_loss(chosen: Tensor, rejected: Tensor, coefficient: float | None) -> Tensor:
    """TRL's own code, on a model that has given these rewards already."""
    trainer: Any = SimpleNamespace(
        model=SimpleNamespace(training=False),
        args=SimpleNamespace(center_rewards_coefficient=coefficient),
        accelerator=SimpleNamespace(gather=lambda x: x, gather_for_metrics=lambda x: x),
        _metrics={"eval": defaultdict(list)},
        _total_train_tokens=0,
    )
    outputs = SimpleNamespace(logits=torch.cat([chosen, rejected])[:, None])
    return RewardTrainer.compute_loss(trainer, lambda **_: outputs, {})


@given(REWARDS, st.floats(-5, 5), st.integers(0, 5))
def test_without_centering_only_differences_count(rewards: list[float], shift: float, chosen: int) -> None:
    chosen %= len(rewards)
    before = loss([rewards], [chosen], centering=0.0)
    assert loss([[reward + shift for reward in rewards]], [chosen], centering=0.0) == pytest.approx(before, abs=1e-9)
    assert before >= 0


@given(REWARDS, st.integers(0, 5), st.floats(0, 1))
def test_the_order_in_which_answers_were_shown_does_not_count(rewards: list[float], chosen: int, c: float) -> None:
    chosen %= len(rewards)
    turned = loss([rewards[::-1]], [len(rewards) - 1 - chosen], centering=c)
    assert turned == pytest.approx(loss([rewards], [chosen], centering=c), abs=1e-9)


@given(REWARDS)
def test_the_gradient_is_softmax_less_the_choice(rewards: list[float]) -> None:
    own = torch.tensor([rewards], dtype=torch.float64, requires_grad=True)
    choice_loss(own, torch.tensor([1]), 0.0).backward()
    expected = torch.tensor(rewards, dtype=torch.float64).softmax(0)
    expected[1] -= 1
    assert own.grad is not None
    torch.testing.assert_close(own.grad[0], expected)
