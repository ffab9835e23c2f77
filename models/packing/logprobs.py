"""Compute log-probabilities of given tokens without holding a whole [tokens, vocabulary] tensor in memory."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

ROWS = 256  # positions whose logits are in memory at once in the forward pass, in the model's precision
COLUMNS = 8192  # vocabulary tokens whose logits are in memory at once, for all positions, in the backward pass
BLOCK = {"cpu": 2**22, "cuda": 2**26}  # logits in fp32 at a time; on a CPU, few enough to fit in cache


def token_logprobs(
    hidden: Float[Tensor, "N hidden"],
    head: Float[Tensor, "V hidden"],
    targets: Int[Tensor, "N"],
    temperature: float = 1.0,
) -> tuple[Float[Tensor, "N"], Float[Tensor, "N"]]:
    """Return log softmax(hidden · headᵀ / temperature)[target], and that distribution's entropy, at each position.

    Both are in nats and fp32; only the log-probabilities are differentiable. Logits are computed for a few positions at
    a time, in the precision of `hidden`, as in the sampler. The backward pass recomputes them for a slice of the
    vocabulary at a time, so that each slice of `head`'s gradient is one matrix product over all positions.
    """
    return _ChunkedLogprobs.apply(hidden, head, targets, temperature)


class _ChunkedLogprobs(torch.autograd.Function):
    """Recomputes the logits z in the backward pass. d log softmax(z/T)[t] / dz = (onehot(t) − softmax(z/T)) / T."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and entropies [N], fp32 nats, of hidden [N, width], head [V, width], targets [N]."""
        logprobs = torch.empty(len(targets), device=hidden.device)
        normalisers, entropies = torch.empty_like(logprobs), torch.empty_like(logprobs)
        for start in range(0, len(targets), ROWS):
            logits = hidden[start : start + ROWS] @ head.T
            for part, block in _blocks(start, logits):
                scores = block.float().div_(temperature)
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
        ctx.temperature = temperature
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        """Return the gradients of hidden and head, each in its input's shape; entropies are not differentiable."""
        hidden, head, targets, normalisers = ctx.saved_tensors
        gradient = gradients[0] / ctx.temperature
        d_hidden = torch.zeros(hidden.shape, device=hidden.device)  # summed in fp32
        d_head = torch.empty_like(head) if ctx.needs_input_grad[1] else None
        for first in range(0, len(head), COLUMNS):
            columns = slice(first, first + COLUMNS)
            logits = hidden @ head[columns].T
            places = (targets - first).clamp(0, logits.shape[1] - 1)
            here = gradient.where(places == targets - first, 0.0)
            for part, block in _blocks(0, logits):
                shares = block.float().div_(ctx.temperature).sub_(normalisers[part, None]).exp_()
                shares.mul_(-gradient[part, None]).scatter_add_(1, places[part, None], here[part, None])
                block.copy_(shares)
            d_hidden += logits @ head[columns]
            if d_head is not None:
                torch.mm(logits.T, hidden, out=d_head[columns])
        return d_hidden.to(hidden.dtype), d_head, None, None


def _blocks(start: int, logits: Float[Tensor, "rows V"]) -> Iterator[tuple[slice, Float[Tensor, "block V"]]]:
    """Yield blocks of a few rows, each with the slice of positions it covers. `start`: the first row's position."""
    size = max(1, BLOCK[logits.device.type] // logits.shape[1])
    for first in range(0, len(logits), size):
        block = logits[first : first + size]
        yield slice(start + first, start + first + len(block)), block
