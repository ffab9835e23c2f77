"""vLLM without the rank of each token among all, which nobody here reads.

To count it, vLLM has torch compile a kernel when the engine answers for the first time: 12 s of processor time with
g++ on a machine that was just started, 3 s on any other. Then it reads all log-probabilities of every step once more.
"""

import torch
from torch import Tensor
from vllm.v1.sample import sampler


def leave_out() -> None:
    """Replace the count by zeros."""
    sampler.batched_count_greater_than = _zeros


def _zeros(logprobs: Tensor, chosen: Tensor) -> Tensor:
    """Return a rank for each row of log-probabilities [rows, vocabulary]; `chosen` [rows, 1] are the tokens' own."""
    return torch.zeros(len(logprobs), dtype=torch.int64, device=logprobs.device)
