"""Where and how this process computes, on the CPU or on a GPU, and the time and peak memory of that."""

import resource
import time

import torch

from models.hf.hardware import compute_dtype

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
PRECISION = compute_dtype(DEVICE)  # ours; what it is compared with computes in the same


def now() -> float:
    """Seconds of a clock; on a GPU what was asked of it so far is done."""
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


def peak_gb() -> float:
    """The most memory so far, GiB: the process's resident memory, or what it had of the GPU's."""
    if CUDA:
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
