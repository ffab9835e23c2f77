"""Packed or plain: decided by equality, for models that can be packed and for models that cannot."""

import copy
import logging
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    GraniteConfig,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    OlmoConfig,
    PretrainedConfig,
    Qwen3Config,
)

from models.packing import attention, self_check
from models.packing.packing import Group, Pack, pack
from models.packing.self_check import choose_packing, packed_logprobs, plain_logprobs
from tests.models.support import tiny

CPU = torch.device("cpu")
SHAPE = tiny.SHAPE | {"vocab_size": 60, "pad_token_id": 0}
PACKED = [
    LlamaConfig(**SHAPE),
    Qwen3Config(**SHAPE, head_dim=12, tie_word_embeddings=False),
    MistralConfig(**SHAPE, sliding_window=4),  # shorter than the probe
    GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4),
    OlmoConfig(**SHAPE),  # has no norms' weights
]
PLAIN = [
    (Gemma2Config(**SHAPE, head_dim=8), "ValueError: its attention is softcapped, or has sinks"),
    (GraniteConfig(**SHAPE, logits_scaling=8.0), "its log-probabilities would be off by"),
    (MambaConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, state_size=4), "its log-probabilities would be"),
]


@pytest.fixture(autouse=True)
def nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_check, "_packed", {})


def model_of(config: PretrainedConfig, dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(copy.deepcopy(config), dtype=dtype).eval()


@pytest.mark.parametrize("config", PACKED, ids=lambda config: config.model_type)
def test_models_that_are_packed(config: PretrainedConfig) -> None:
    """bf16 weights, which the check computes in fp32, are the same bits afterwards."""
    model = model_of(config, torch.bfloat16)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert choose_packing(model) is packed_logprobs
    after = model.state_dict()
    assert all(after[name].dtype == own.dtype and after[name].equal(own) for name, own in before.items())
    assert model.config._attn_implementation == attention.ATTENTION
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(("config", "reason"), PLAIN, ids=lambda value: getattr(value, "model_type", ""))
def test_models_that_are_not(config: PretrainedConfig, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    model = model_of(config)
    before = model.config._attn_implementation
    with caplog.at_level(logging.WARNING, "nightschool"):
        assert choose_packing(model) is plain_logprobs
    assert model.config._attn_implementation == before
    (line,) = [record.getMessage() for record in caplog.records if record.name == "nightschool"]
    assert line.startswith(
        f"{type(model).__name__} is trained one completion at a time, which is slower, because packing fails"
    )
    assert reason in line
    found, entropies = plain_logprobs(model, pack([Group([1, 2, 3], [[4, 5], [6]], [0, 1])], CPU, 1.6))
    logits = [
        (model(input_ids=torch.tensor([ids])).logits[0].float() / 1.6).log_softmax(-1)
        for ids in ([1, 2, 3, 4], [1, 2, 3])
    ]
    expected = torch.stack([logits[0][2, 4], logits[0][3, 5], logits[1][2, 6]])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert entropies[2].item() == pytest.approx(float(-(logits[1][2].exp() * logits[1][2]).sum()), abs=1e-4)


def test_only_the_first_layers_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as it takes to have a layer of each type."""
    measured: list[int] = []
    monkeypatch.setattr(
        self_check, "_measured", lambda model, *others: measured.append(len(model.model.layers)) or (torch.ones(2),) * 2
    )
    kinds = ["sliding_attention"] * 3 + ["full_attention"] + ["sliding_attention"] * 4
    for config in (
        LlamaConfig(**SHAPE | {"num_hidden_layers": 8}),
        Qwen3Config(**SHAPE | {"num_hidden_layers": 8}, use_sliding_window=True, layer_types=kinds),
    ):
        model = model_of(config)
        choose_packing(model)
        assert len(model.model.layers) == 8
    assert measured == [2, 2, 4, 4]


def show_the_last_key_too_early(seen: Tensor, layout: Any, number: int, *_: Any) -> Tensor:
    seen[:, 1:, -1] |= number > 0
    return seen


def shift_positions(packed: Pack, *_: Any) -> Pack:
    packed.position_ids[0, -3:] += 1
    return packed


def lose_gradients(earlier: Tensor | None, *_: Any) -> Tensor | None:
    return None if earlier is None else earlier * 0.5


@pytest.mark.parametrize(
    ("place", "name", "fault"),
    [
        (attention, "_visible", show_the_last_key_too_early),
        (self_check, "pack", shift_positions),
        (attention, "_collect", lose_gradients),
    ],
)
def test_faults_are_found(place: Any, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = getattr(place, name)
    monkeypatch.setattr(place, name, lambda *arguments: fault(sound(*arguments), *arguments))
    assert choose_packing(model_of(LlamaConfig(**SHAPE), torch.bfloat16)) is plain_logprobs
