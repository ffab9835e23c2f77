"""The device and precision of this process, a clock and its peak memory."""

import resource
import time

import torch

from models.hf.hardware import compute_dtype

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
PRECISION = compute_dtype(DEVICE)  # of the trainer, and of whatever it is compared with


def now() -> float:
    """Return a time in seconds, on a GPU after it has finished its work."""
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


def peak_gb() -> float:
    """Return the peak memory so far in GiB: the GPU's, or without one the process's resident memory."""
    if CUDA:
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
