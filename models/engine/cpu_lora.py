"""vLLM's products with an adapter, for a CPU: there its own copy the adapter's matrices for every single token.

Here all tokens of a batch have the same adapter, so one matrix product does (`install`): four times the tokens a second
with the starter model and rank 16 on two cores. A batch that mixes adapters is left to vLLM's own.
"""

from typing import Any

from torch import Tensor
from vllm.lora.ops import torch_ops
from vllm.lora.punica_wrapper import punica_cpu


def install() -> None:
    """Puts these products in the place of vLLM's."""
    punica_cpu.sgmv_shrink = shrink
    punica_cpu.sgmv_expand_slice = expand_slice


def shrink(
    inputs: Tensor, down: Tensor, output: Tensor, starts: Tensor, lengths: Tensor, adapters: Tensor, *rest: Any
) -> None:
    """output = scale · inputs · downᵀ: [tokens, width] to [tokens, rank]; `down` is [adapters, 1, rank, width].

    The rest are vLLM's own: how many stretches of one adapter the batch has, the longest, the tokens, and the scale.
    """
    stretches, _, _, scale = rest
    if stretches > 1:
        torch_ops.sgmv_shrink(inputs, down, output, starts, lengths, adapters, *rest)
    else:
        output.copy_(inputs @ down[adapters[0], 0].T).mul_(scale)


def expand_slice(
    inputs: Tensor, up: Tensor, output: Tensor, starts: Tensor, lengths: Tensor, adapters: Tensor, *rest: Any
) -> None:
    """output[:, offset : offset + size] += inputs · upᵀ: [tokens, rank] to [tokens, size]; as `shrink`."""
    stretches, _, _, offset, size, add = rest
    if stretches > 1 or not add:
        torch_ops.sgmv_expand_slice(inputs, up, output, starts, lengths, adapters, *rest)
    else:
        output[:, offset : offset + size].addmm_(inputs.to(output.dtype), up[adapters[0], 0].T)
