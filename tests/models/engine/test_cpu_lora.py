"""LoRA products of a batch whose tokens have different adapters, or none; and what vLLM returns without ranks."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from models.engine import cpu_lora


@pytest.mark.parametrize("adapters", [[0, 0, 0, 0, 0], [1, 1, -1, 0, 0], [-1, -1, -1, -1, 1], [-1] * 5])
def test_each_token_gets_its_own_adapters_product_in_each_slice(adapters: list[int]) -> None:
    torch.manual_seed(0)
    inputs, outputs = torch.randn(5, 6), torch.ones(5, 10)
    downs = [torch.randn(2, 1, 3, 6) for _ in range(2)]
    ups = [torch.randn(2, 1, width, 3) for width in (4, 6)]
    wrapper = SimpleNamespace(runs=cpu_lora.runs(adapters))
    cpu_lora.add_products(wrapper, outputs, inputs, downs, ups, 0.5, (4, 6))
    for token, adapter in enumerate(adapters):
        expected = torch.ones(10)
        if adapter >= 0:
            parts = [up[adapter, 0] @ (down[adapter, 0] @ inputs[token]) for down, up in zip(downs, ups, strict=True)]
            expected += 0.5 * torch.cat(parts)
        assert torch.allclose(outputs[token], expected, atol=1e-5)


def test_a_layer_computes_products_only_while_its_adapter_is_not_all_zeros() -> None:
    layer: Any = SimpleNamespace(lora_b_stacked=(torch.zeros(1, 1, 4, 2),))

    def zero(layer: Any, index: int) -> None:
        layer.lora_b_stacked[0][index] = 0

    def add_one(layer: Any, inputs: Tensor, outputs: Tensor) -> Tensor:
        return outputs + 1

    reset, apply = cpu_lora._forgetting(zero), cpu_lora._where_adapted(add_one)
    sums = []
    for value in (0.0, 0.5, 0.0):
        reset(layer, 0)
        layer.lora_b_stacked[0][0, 0, 1] = value
        sums.append([float(apply(layer, torch.ones(1), torch.zeros(1))) for _ in range(2)])
    assert sums == [[0, 0], [1, 1], [0, 0]]


def test_without_ranks_log_probabilities_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.v1.sample import sampler  # seconds, which each process that collects tests would need

    def compiled(*_: object) -> None:
        raise AssertionError("a kernel would be compiled")

    monkeypatch.setattr(sampler, "batched_count_greater_than", compiled)  # fails where vLLM has moved it
    cpu_lora.skip_token_ranks()
    logprobs = torch.randn(3, 7, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    chosen = torch.tensor([4, 0, 6])
    found = sampler.Sampler.gather_logprobs(logprobs, 0, chosen)
    assert found.logprob_token_ids[:, 0].tolist() == chosen.tolist()
    assert found.logprobs[:, 0].tolist() == logprobs[torch.arange(3), chosen].tolist()
    assert found.selected_token_ranks.tolist() == [0, 0, 0]
