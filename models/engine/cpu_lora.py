"""Faster and safer LoRA products for vLLM on a CPU, and no ranks of the sampled tokens, which nothing here uses.

vLLM's products copy the adapter's matrices for every token, and apply the last adapter to tokens that have no adapter.
Here, each run of consecutive tokens with the same adapter takes one pair of matrix products, and tokens and layers
without an adapter take none.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor


def install() -> None:
    """Replace vLLM's LoRA products on a CPU with those in this module. vLLM calls this as a plugin in each process."""
    from vllm.lora.layers.base_linear import BaseLinearLayerWithLoRA as Layer
    from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU as Wrapper
    from vllm.platforms import current_platform

    if not current_platform.is_cpu() or Wrapper.add_lora_linear is add_products:
        return
    Wrapper.add_lora_linear = add_products  # pyrefly: ignore[bad-assignment]
    Wrapper.update_metadata = _with_runs(Wrapper.update_metadata)
    Layer.reset_lora = _forgetting(Layer.reset_lora)
    Layer._apply_lora_to_output = _where_adapted(Layer._apply_lora_to_output)


def skip_token_ranks() -> None:
    """Stop vLLM from computing the rank of each sampled token among all tokens: each rank is then 0.

    To compute them, vLLM makes torch compile a kernel (3 to 12 s) and reads every step's log-probabilities twice.
    """
    from vllm.v1.sample import sampler

    def zeros(x: Tensor, values: Tensor) -> Tensor:
        return torch.zeros(len(x), dtype=torch.int64, device=x.device)

    sampler.batched_count_greater_than = zeros


def add_products(
    wrapper: Any,
    outputs: Tensor,
    inputs: Tensor,
    downs: Sequence[Tensor],
    ups: Sequence[Tensor],
    scale: float,
    widths: Sequence[int],
    **_: Any,
) -> None:
    """Add scale · inputs [tokens, width] · downᵀ · upᵀ to each slice of `outputs`, for the tokens with an adapter.

    `downs`, `ups`: for each slice, [adapters, 1, rank, width] and [adapters, 1, its width, rank]. `widths`: the
    slices' widths. `wrapper.runs`: see `runs`.
    """
    for tokens, adapter in wrapper.runs:
        start = 0
        for down, up, width in zip(downs, ups, widths, strict=True):
            shrunk = inputs[tokens] @ down[adapter, 0].T
            outputs[tokens, start : start + width].addmm_(shrunk, up[adapter, 0].T, alpha=scale)
            start += width


def runs(adapters: Sequence[int]) -> list[tuple[slice, int]]:
    """Return each run of consecutive tokens with the same adapter, as a slice with the adapter's number.

    `adapters`: each token's adapter; −1: none. Tokens without an adapter are left out.
    """
    found, start = list[tuple[slice, int]](), 0
    for adapter, tokens in groupby(adapters):
        end = start + sum(1 for _ in tokens)
        if adapter >= 0:
            found.append((slice(start, end), adapter))
        start = end
    return found


def _with_runs(update: Callable[..., None]) -> Callable[..., None]:
    """Wrap the method that vLLM calls when the tokens' adapters change, to find the runs once for all layers."""

    def updated(wrapper: Any, *arguments: Any, **keywords: Any) -> None:
        update(wrapper, *arguments, **keywords)
        wrapper.runs = runs(wrapper.token_lora_indices.tolist())

    return updated


def _forgetting(reset: Callable[..., None]) -> Callable[..., None]:
    """Wrap the method that vLLM calls before a layer's adapter changes, so that the layer is checked again."""

    def changed(layer: Any, index: int) -> None:
        reset(layer, index)
        layer.adapted = None

    return changed


def _where_adapted(apply: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap the method that adds a layer's products, so that it does nothing if the layer's adapters are all zeros."""

    def applied(layer: Any, inputs: Tensor, outputs: Tensor) -> Tensor:
        if getattr(layer, "adapted", None) is None:
            layer.adapted = any(bool(up.any()) for up in layer.lora_b_stacked)
        return apply(layer, inputs, outputs) if layer.adapted else outputs

    return applied
