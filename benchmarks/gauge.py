"""Time and peak memory of what this process computes, on the CPU or on a GPU."""

import resource
import time

import torch

CUDA = torch.cuda.is_available()


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
