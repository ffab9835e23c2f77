"""The reward model: the loss of a choice, packed rewards against each answer alone, and saving."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from conf.schema import TrainerConfig
from models.reward_model import HEAD, RewardModel, choice_loss
from tests.models.support.tiny import plain_model, random_tokens, trainer_config
from tests.models.support.weights import assert_close

PROMPTS = [random_tokens(5, 1), random_tokens(3, 2), random_tokens(8, 3)]
ANSWERS = [
    [random_tokens(4, 11), random_tokens(1, 12), random_tokens(9, 13)],
    [random_tokens(2, 14), []],  # of no token at all: the prompt's last one stands for it
    [random_tokens(6, 15)],
]
GROUPS = list(zip(PROMPTS, ANSWERS, strict=True))


NOT_SHOWN = float("-inf")
REWARDS = st.lists(st.floats(-20, 20), min_size=2, max_size=6)


# --- the model


def with_head(folder: Path, config: TrainerConfig | None = None) -> RewardModel:
    """A reward model whose head is no longer 0."""
    model = RewardModel(folder, config or trainer_config())
    model.head = torch.randn(model.head.shape, generator=torch.Generator().manual_seed(5))
    return model


def mean_state(base: Any, prompt: list[int], answer: list[int]) -> Tensor:
    states = base(input_ids=torch.tensor([[*prompt, *answer]])).last_hidden_state[0].float()
    return states[len(prompt) :].mean(dim=0) if answer else states[-1]


def expected(folder: Path, head: Tensor) -> list[list[float]]:
    """By transformers alone, one answer after the other, without any of the packing's code."""
    base: Any = plain_model(folder).base_model
    with torch.no_grad():
        states = [[mean_state(base, prompt, answer) for answer in answers] for prompt, answers in GROUPS]
    return [[float(state @ head) for state in own] for own in states]


@pytest.mark.parametrize(("budget", "packs"), [(4096, True), (12, True), (1, True), (4096, False)])
def test_answers_are_judged_alone(
    exact_folder: Path, budget: int, packs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.reward_model.compute_dtype", lambda device: torch.float32)
    if not packs:
        monkeypatch.setattr("models.reward_model.choose_packing", lambda model: None)
    model = with_head(exact_folder, trainer_config(microbatch_tokens=budget))
    assert model.packs == packs
    own = model.judge(GROUPS)
    assert [len(rewards) for rewards in own] == [3, 2, 1]
    for found, wanted in zip(own, expected(exact_folder, model.head), strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)


def test_a_reward_model_can_take_the_lower_layers_alone(
    exact_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.reward_model.compute_dtype", lambda device: torch.float32)
    model = RewardModel(exact_folder, trainer_config(), depth=0.5)
    plain: Any = plain_model(exact_folder).base_model
    del plain.layers[1:]
    (prompt, answers), *_ = GROUPS
    with torch.no_grad():
        states = [mean_state(plain, prompt, answer) for answer in answers]
    assert_close({"states": model.read([(prompt, answers)])}, {"states": torch.stack(states)}, 1e-4, 1e-3)
    model.save(tmp_path / "kept")
    again = RewardModel.load(tmp_path / "kept", trainer_config())
    assert len(again.model.base_model.layers) == 1
    assert again.read(GROUPS).equal(model.read(GROUPS))


def test_what_is_saved_comes_back_to_the_bit(folder: Path, tmp_path: Path) -> None:
    model = with_head(folder)
    model.save(tmp_path / "kept")
    again = RewardModel.load(tmp_path / "kept", trainer_config())
    assert again.judge(GROUPS) == model.judge(GROUPS)
    assert load_file(tmp_path / "kept" / HEAD)["weight"].equal(model.head)
    assert again.judge([]) == []
    assert again.judge([([5], []), ([5], [[6, 1]])])[0] == []
    with pytest.raises(OSError, match=HEAD):
        RewardModel.load(folder, trainer_config())


# --- the loss


def loss(rewards: list[list[float]], chosen: list[int], **others: Any) -> float:
    return float(choice_loss(torch.tensor(rewards, dtype=torch.float64), torch.tensor(chosen), **others))


def test_the_loss_by_hand() -> None:
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


@given(REWARDS, st.floats(-5, 5), st.integers(0, 5))
def test_without_centering_only_differences_count(rewards: list[float], shift: float, chosen: int) -> None:
    chosen %= len(rewards)
    before = loss([rewards], [chosen], centering=0.0)
    assert loss([[reward + shift for reward in rewards]], [chosen], centering=0.0) == pytest.approx(before, abs=1e-9)
    assert before >= 0
