"""The device, precision and peak memory of this process, and a clock."""

import resource
import time

import torch

from models.hf.hardware import compute_dtype

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
PRECISION = compute_dtype(DEVICE)  # of the trainer, and of whatever it is compared with


def now() -> float:
    """Return the time in seconds. If there is a GPU, first wait until its work is finished."""
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


def peak_gb() -> float:
    """Return the peak memory so far in GiB: that of the GPU or, without a GPU, the process's resident memory."""
    if CUDA:
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
