"""Stop vLLM from computing the rank of each sampled token among all tokens. Nothing here uses the ranks.

To compute them, vLLM makes torch compile a kernel (3 to 12 s) and reads every step's log-probabilities twice.
"""

import torch
from torch import Tensor
from vllm.v1.sample import sampler


def disable() -> None:
    """Replace vLLM's rank computation with a function that returns zeros."""
    sampler.batched_count_greater_than = _zeros


def _zeros(logprobs: Tensor, chosen: Tensor) -> Tensor:
    """Return rank 0 for each row of `logprobs` [rows, vocabulary]. `chosen` [rows, 1]: the sampled tokens' values."""
    return torch.zeros(len(logprobs), dtype=torch.int64, device=logprobs.device)
