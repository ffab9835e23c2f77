"""Log-probabilities of given tokens, without ever holding a [tokens, vocabulary] tensor as a whole."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK = 1024  # positions whose logits are in memory at once, in the model's precision
BLOCK = 64  # of these, how many are in fp32 at a time: few enough to stay in the processor's cache


def token_logprobs(
    hidden: Float[Tensor, "N hidden"], head: Float[Tensor, "V hidden"], targets: Int[Tensor, "N"]
) -> tuple[Float[Tensor, "N"], Float[Tensor, "N"]]:
    """log softmax(hidden · headᵀ)[target] for each position, in fp32, and the distributions' entropy in nats.

    Only the first is differentiable. The logits are computed in `hidden`'s precision, as the sampler does, a chunk at
    a time, and once more in the backward pass.
    """
    return _ChunkedLogprobs.apply(hidden, head, targets)  # pyright: ignore[reportReturnType]


class _ChunkedLogprobs(torch.autograd.Function):
    """d log softmax(z)[t] / dz = onehot(t) − softmax(z): the logits are made again rather than kept."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        logprobs = torch.empty(len(targets), device=hidden.device)
        normalisers, entropies = torch.empty_like(logprobs), torch.empty_like(logprobs)
        for start in range(0, len(targets), CHUNK):
            logits = hidden[start : start + CHUNK] @ head.T
            for part, block in _blocks(start, logits):
                scores = block.float()
                highest = scores.amax(dim=1, keepdim=True)
                scores.sub_(highest)
                chosen = scores.gather(1, targets[part, None]).squeeze(1)
                shares = scores.exp()
                total = shares.sum(dim=1)
                normaliser = total.log()
                logprobs[part] = chosen - normaliser
                normalisers[part] = normaliser + highest.squeeze(1)
                entropies[part] = normaliser - torch.linalg.vecdot(shares, scores) / total
        ctx.save_for_backward(hidden, head, targets, normalisers)
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None]:
        hidden, head, targets, normalisers = ctx.saved_tensors
        gradient = gradients[0]
        d_hidden = torch.empty_like(hidden)
        d_head: Tensor | None = None  # summed in fp32 where there are several chunks
        for start in range(0, len(targets), CHUNK):
            chunk = slice(start, start + CHUNK)
            logits = hidden[chunk] @ head.T
            for part, block in _blocks(start, logits):
                shares = block.float().sub_(normalisers[part, None]).exp_().mul_(-gradient[part, None])
                block.copy_(shares.scatter_add_(1, targets[part, None], gradient[part, None]))
            d_hidden[chunk] = logits @ head
            if ctx.needs_input_grad[1]:
                own = logits.T @ hidden[chunk]
                d_head = own if len(targets) <= CHUNK else own.float() if d_head is None else d_head.add_(own)
        return d_hidden, None if d_head is None else d_head.to(head.dtype), None


def _blocks(start: int, logits: Float[Tensor, "chunk V"]) -> Iterator[tuple[slice, Float[Tensor, "block V"]]]:
    """A chunk's rows a few at a time, each with its place among all positions; `start` is the chunk's."""
    for first in range(0, len(logits), BLOCK):
        block = logits[first : first + BLOCK]
        yield slice(start + first, start + first + len(block)), block
