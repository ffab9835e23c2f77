"""Passes that fit into memory: the estimate, recomputed layers, and what happens when memory runs out."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, Qwen3Config

from conf.schema import LoraConfig
from conf.storage.home import NightError
from models.hf import lora
from models.hf.memory_plan import CARDS, GIB, LEAST_TOKENS, METHODS, STUDENTS, Shape
from models.packing import attention
from models.packing.lean_layers import make_lean, recompute_layers
from models.packing.packing import Group, Pack, pack
from models.packing.passes import fewer
from models.packing.self_check import choose_packing
from models.rollout import Rollout
from models.trainer import Trainer
from tests.models.support.tiny import ADVANTAGES, random_tokens, trainer_config
from tests.models.support.weights import assert_close, gradients_of_round

LAYERS, LENGTH, ROWS = 3, 60, 6
SIZES: dict[str, Any] = {"num_hidden_layers": LAYERS, "vocab_size": 500}
MODELS = [
    LlamaConfig(hidden_size=144, intermediate_size=384, num_attention_heads=9, num_key_value_heads=3, **SIZES),
    Qwen3Config(
        hidden_size=64, intermediate_size=192, num_attention_heads=4, num_key_value_heads=2, head_dim=32, **SIZES
    ),
]


def saved_bytes(model: Any, groups: list[Group]) -> tuple[int, int]:
    """The bytes that torch saves for the backward pass of a pack, and the pack's tokens."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    packed, kept = pack(groups, torch.device("cpu")), dict[int, torch.Tensor]()

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if (place := tensor.untyped_storage().data_ptr()) not in weights:
            kept[place] = tensor
        return tensor

    logprobs = choose_packing(model)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = logprobs(model, packed)
    del result
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values()), packed.input_ids.shape[1]


@pytest.mark.parametrize("adapters", [False, True])
@pytest.mark.parametrize("config", MODELS, ids=["llama", "qwen3"])
def test_the_estimate_is_what_torch_saves(
    config: PretrainedConfig, adapters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the attention of a GPU, where the estimate is used, and as many prompt tokens as answer tokens."""
    monkeypatch.setattr(attention._PackedAttention, "apply", attention._fused)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    make_lean(model)
    shape = Shape.of(config)
    assert shape.parameters == pytest.approx(sum(p.numel() for p in model.parameters()), rel=0.02)
    if adapters:
        lora.attach(model, LoraConfig(rank=2))
        trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
        assert shape.adapter_parameters(2) == trained
    group = Group(random_tokens(LENGTH, 1), [random_tokens(LENGTH, 2 + row) for row in range(ROWS)], range(ROWS))
    saved, tokens = saved_bytes(model, [group])
    assert 0.95 * saved <= tokens * shape.token_bytes(adapters, recomputed=False) <= 1.25 * saved
    recompute_layers(model)
    saved, _ = saved_bytes(model, [group])
    assert saved < tokens * shape.token_bytes(adapters, recomputed=True)


def test_more_memory_never_makes_smaller_passes() -> None:
    for shape in STUDENTS.values():
        for rank in METHODS.values():
            found = [shape.night(rank, gib * GIB, 4096) for gib in range(1, CARDS[-1])]
            known = [passes for passes in found if passes]
            assert found == [None] * (len(found) - len(known)) + known
            plain = [passes.tokens for passes in known if not passes.recomputed]
            assert plain == sorted(plain)
            assert known[len(known) - len(plain) :] == [(tokens, False) for tokens in plain]
            assert min(passes.tokens for passes in known) >= LEAST_TOKENS
            shares = [shape.engine_share(rank, card * GIB) for card in CARDS]
            assert shares == sorted(shares)


def test_a_trainer_with_little_memory_learns_the_same(
    folder: Path, rollouts: list[Rollout], exact: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (expected,), _ = gradients_of_round(Trainer.load(folder, trainer_config()), rollouts, ADVANTAGES)
    monkeypatch.setattr("models.trainer.free_memory", lambda device: 1.0)
    trainer = Trainer.load(folder, trainer_config(microbatch_tokens=4 * LEAST_TOKENS))
    assert trainer.tokens_per_pass == LEAST_TOKENS
    layers: Any = trainer.model.base_model
    assert all(layer.forward.func is checkpoint for layer in layers.layers)
    (found,), _ = gradients_of_round(trainer, rollouts, ADVANTAGES)
    assert_close(found, expected)


def test_a_step_without_enough_memory_is_repeated_with_fewer_tokens(
    folder: Path, rollouts: list[Rollout], exact: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory runs out in the second pass of a step, with gradients from the first."""
    (expected,), metrics = gradients_of_round(Trainer.load(folder, trainer_config()), rollouts, ADVANTAGES)
    trainer, tried = Trainer.load(folder, trainer_config(microbatch_tokens=20)), list[int]()

    def packed(groups: list[Group], device: torch.device, temperature: float) -> Pack:
        tried.append(sum(group.tokens for group in groups))
        if trainer.tokens_per_pass > 10 and len(tried) > 1:
            torch.empty(2**60, dtype=torch.uint8)  # no machine has this much
        return pack(groups, device, temperature)

    monkeypatch.setattr("models.trainer.pack", packed)
    (found,), again = gradients_of_round(trainer, rollouts, ADVANTAGES)
    assert trainer.tokens_per_pass <= 10
    assert_close(found, expected)
    assert again | {"seconds": 0} == pytest.approx(metrics | {"seconds": 0}, rel=1e-4, abs=1e-6)


def test_a_completion_that_does_not_fit_is_an_error() -> None:
    """Passes shrink to one completion, then layers are recomputed, then no way is left."""
    groups = [Group([1, 2, 3], [[4] * 50], [0]), Group([1, 2], [[4] * 5, [4] * 6], [1, 2])]
    model: Any = AutoModelForCausalLM.from_config(MODELS[0], dtype=torch.bfloat16)
    tokens = fewer(model, groups, 10_000)
    assert 30 < tokens < 40
    while (less := fewer(model, groups, tokens)) < tokens:
        tokens = less
    assert tokens < 10
    assert not recompute_layers(model)  # they already do
    with pytest.raises(NightError, match="of 53 tokens with its prompt, does not fit; lower grpo.max_completion_token"):
        fewer(model, groups, tokens)
