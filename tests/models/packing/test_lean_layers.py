"""Lean layers: the values and gradients of transformers' own with less memory; other layers are left alone."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    LlamaConfig,
    MistralConfig,
    PhiConfig,
    PretrainedConfig,
    Qwen3Config,
)
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm

from models.packing.lean_layers import make_lean
from tests.models.support import tiny

SHAPE = tiny.SHAPE | {"vocab_size": 50, "initializer_range": 0.02, "pad_token_id": 0}


def model_of(config: PretrainedConfig, dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return model.eval()


def passes(model: Any) -> tuple[Tensor, dict[str, Tensor]]:
    ids = torch.arange(1, 41).view(2, 20)
    logits = model(input_ids=ids, use_cache=False).logits
    (logits.float() * torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))).sum().backward()
    return logits.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


def lean(model: Any) -> set[str]:
    return {type(module).__name__ for module in model.modules() if "forward" in vars(module)}


CONFIGS = [LlamaConfig(**SHAPE), Qwen3Config(**SHAPE, head_dim=12), MistralConfig(**SHAPE)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.model_type)
def test_values_and_gradients_of_the_usual_models(config: PretrainedConfig, dtype: torch.dtype) -> None:
    """In bf16 the forward pass is the same to the bit."""
    plain, ours = model_of(config, dtype), model_of(config, dtype)
    make_lean(ours)
    name = type(plain).__name__.removesuffix("ForCausalLM")
    assert lean(ours) == {f"{name}RMSNorm", f"{name}MLP"}
    (logits, gradients), (found, own) = passes(plain), passes(ours)
    exact = dtype == torch.bfloat16
    torch.testing.assert_close(found, logits, atol=0.0 if exact else 1e-5, rtol=0.0 if exact else 1e-5)
    for key, gradient in gradients.items():
        distance = (own[key] - gradient).float().norm() / gradient.float().norm()
        assert distance < (0.02 if exact else 1e-4), key


@pytest.mark.parametrize("config", [Gemma2Config(**SHAPE, head_dim=8), PhiConfig(**SHAPE)], ids=lambda c: c.model_type)
def test_other_layers_are_left_alone(config: PretrainedConfig) -> None:
    """Gemma's norms multiply by 1 + weight, and its gate is a GELU; Phi has neither."""
    model = model_of(config)
    make_lean(model)
    assert lean(model) == set()


def test_less_memory_is_kept() -> None:
    def kept(module: Any, inputs: Tensor) -> int:
        sizes: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            sizes[tensor.data_ptr()] = tensor.nbytes
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            output = module(inputs)
        assert output.requires_grad
        return sum(sizes.values())

    config, inputs = LlamaConfig(**SHAPE), torch.randn(1, 100, 32, dtype=torch.bfloat16, requires_grad=True)
    for module in (LlamaRMSNorm(32).bfloat16(), LlamaMLP(config).bfloat16()):
        before = kept(module, inputs)
        make_lean(torch.nn.Sequential(module))
        assert kept(module, inputs) < 0.85 * before
