"""The reward model: packed answers get what they get one by one, in values and gradients; what is saved comes back."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from conf.schema import TrainerConfig
from models.packing.packing import pack, split
from models.reward_model import HEAD, RewardModel, answer_group
from tests.models.support.tiny import plain_model, random_tokens, trainer_config, write_tiny

PROMPTS = [random_tokens(5, 1), random_tokens(3, 2), random_tokens(8, 3)]
ANSWERS = [
    [random_tokens(4, 11), random_tokens(1, 12), random_tokens(9, 13)],
    [random_tokens(2, 14), []],  # of no token at all: the prompt's last one stands for it
    [random_tokens(6, 15)],
]
GROUPS = list(zip(PROMPTS, ANSWERS, strict=True))


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def exact_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "exact", request.param, dtype=torch.float32)


def with_head(folder: Path, config: TrainerConfig | None = None) -> RewardModel:
    """A reward model whose head is no longer 0."""
    model = RewardModel(folder, config or trainer_config())
    with torch.no_grad():
        model.head.weight.copy_(torch.randn(model.head.weight.shape, generator=torch.Generator().manual_seed(5)))
    return model


def expected(folder: Path, head: Tensor) -> list[list[float]]:
    """By transformers alone, one answer after the other, without any of the packing's code."""
    base: Any = plain_model(folder).base_model
    with torch.no_grad():
        states = [
            [base(input_ids=torch.tensor([[*prompt, *answer]])).last_hidden_state[0, -1] for answer in answers]
            for prompt, answers in GROUPS
        ]
    return [[float(state.float() @ head.detach()) for state in own] for own in states]


@pytest.mark.parametrize("budget", [4096, 12, 1])
def test_packed_rewards_are_those_of_each_answer_alone(
    exact_folder: Path, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.reward_model.compute_dtype", lambda device: torch.float32)
    model = with_head(exact_folder, trainer_config(microbatch_tokens=budget))
    assert model.packs
    own = model.judge(GROUPS)
    assert [len(rewards) for rewards in own] == [3, 2, 1]
    for found, wanted in zip(own, expected(exact_folder, model.head.weight), strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)


def test_packed_gradients_are_those_of_each_answer_alone(exact_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.reward_model.compute_dtype", lambda device: torch.float32)
    assert gradients(exact_folder, packs=True).keys() == gradients(exact_folder, packs=False).keys()
    for name, plain in gradients(exact_folder, packs=False).items():
        torch.testing.assert_close(gradients(exact_folder, packs=True)[name], plain, rtol=1e-3, atol=1e-4)


def gradients(folder: Path, *, packs: bool) -> dict[str, Tensor]:
    model = with_head(folder)
    model.packs = packs
    if not packs:
        model.model.set_attn_implementation("sdpa")
    groups = [answer_group(prompt, answers, [0] * len(answers)) for prompt, answers in GROUPS]
    packed = pack(groups, model.device)
    rewards = model.rewards(packed)
    assert len(rewards) == 6
    (rewards * torch.linspace(-1, 1, 6)).sum().backward()
    named = {**dict(model.model.named_parameters()), "head": model.head.weight}
    return {name: p.grad for name, p in named.items() if p.grad is not None}


def test_a_model_that_cannot_be_packed_is_asked_answer_by_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from models import reward_model

    monkeypatch.setattr("models.reward_model.compute_dtype", lambda device: torch.float32)
    packed = with_head(folder).judge(GROUPS)
    monkeypatch.setattr(reward_model, "choose_packing", lambda model: None)
    plain = with_head(folder)
    assert not plain.packs
    for found, wanted in zip(plain.judge(GROUPS), packed, strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)


def test_a_new_head_knows_no_difference(folder: Path) -> None:
    assert RewardModel(folder, trainer_config()).judge(GROUPS) == [[0.0] * 3, [0.0] * 2, [0.0]]


def test_the_last_token_counts(folder: Path) -> None:
    """Answers that differ in nothing but their last token: a pack for the policy would not read it."""
    prompt, start = random_tokens(4, 1), random_tokens(5, 2)
    ((first, second),) = with_head(folder).judge([(prompt, [[*start, 7], [*start, 8]])])
    assert first != second


def test_what_is_saved_comes_back_to_the_bit(folder: Path, tmp_path: Path) -> None:
    model = with_head(folder)
    model.save(tmp_path / "kept")
    again = RewardModel.load(tmp_path / "kept", trainer_config())
    assert again.judge(GROUPS) == model.judge(GROUPS)
    assert load_file(tmp_path / "kept" / HEAD)["weight"].equal(model.head.weight)
    assert not any(parameter.requires_grad for parameter in again.model.parameters())


def test_a_checkpoint_without_a_head_is_no_reward_model(folder: Path) -> None:
    with pytest.raises(OSError, match=HEAD):
        RewardModel.load(folder, trainer_config())


def test_no_groups_and_groups_without_answers(folder: Path) -> None:
    model = with_head(folder)
    assert model.judge([]) == []
    assert model.judge([([5], []), ([5], [[6, 1]])])[0] == []


def test_a_cut_group_keeps_its_order(folder: Path) -> None:
    """A budget below every group's size cuts it into single answers; sorted by length, they come back in order."""
    model = with_head(folder, trainer_config(microbatch_tokens=6))
    groups = [answer_group(prompt, answers, range(len(answers))) for prompt, answers in GROUPS]
    assert len(split(groups, 6)) > len(GROUPS)
    whole = with_head(folder)
    for found, wanted in zip(model.judge(GROUPS), whole.judge(GROUPS), strict=True):
        assert found == pytest.approx(wanted, abs=0.3)  # bf16 rounds other shapes otherwise
