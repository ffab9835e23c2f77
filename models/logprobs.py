"""Log-probabilities of given tokens, without ever holding a [tokens, vocabulary] tensor as a whole."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK = 1024  # positions whose logits are in memory at once


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
            part = slice(start, start + CHUNK)
            logits = (hidden[part] @ head.T).float()
            chosen = logits.gather(1, targets[part, None]).squeeze(1)
            normaliser = logits.logsumexp(dim=1)
            logprobs[part], normalisers[part] = chosen - normaliser, normaliser
            logits.sub_(normaliser[:, None])
            entropies[part] = -torch.linalg.vecdot(logits.exp(), logits)
        ctx.save_for_backward(hidden, head, targets, normalisers)
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None]:
        hidden, head, targets, normalisers = ctx.saved_tensors
        gradient = gradients[0]
        d_hidden = torch.empty_like(hidden)
        d_head = torch.zeros_like(head, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        for start in range(0, len(targets), CHUNK):
            part = slice(start, start + CHUNK)
            d_logits = (hidden[part] @ head.T).float()
            d_logits.sub_(normalisers[part, None]).exp_().mul_(-gradient[part, None])
            d_logits.scatter_add_(1, targets[part, None], gradient[part, None])
            d_logits = d_logits.to(hidden.dtype)
            d_hidden[part] = d_logits @ head
            if d_head is not None:
                d_head += d_logits.T @ hidden[part]
        return d_hidden, None if d_head is None else d_head.to(head.dtype), None
