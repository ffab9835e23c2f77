"""Stop vLLM from computing the rank of each sampled token among all tokens. Nothing here uses the ranks.

To compute them, vLLM makes torch compile a kernel (3 to 12 s) and reads every step's log-probabilities twice.
"""

import torch
from torch import Tensor
from vllm.v1.sample import sampler


def disable() -> None:
    """Replace vLLM's rank computation with a function that returns zeros."""
    sampler.batched_count_greater_than = _zeros


def _zeros(x: Tensor, values: Tensor) -> Tensor:
    """Return rank 0 for each row of `x`: log-probabilities [rows, vocabulary]. `values`: the sampled ones [rows, 1]."""
    return torch.zeros(len(x), dtype=torch.int64, device=x.device)
