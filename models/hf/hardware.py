"""The hardware that this process may use: device, precision, and the cores and memory that its control groups allow.

torch is imported on first use: the import takes a second or two, and many callers need only the cores.
"""

import ctypes
import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
GIB = 2**30
OUT_OF_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


@dataclass(frozen=True)
class Memory:
    """Main memory in GiB. `limit`: the most that the container may use; infinity if it has no limit."""

    total: float
    available: float
    limit: float = math.inf


def memory() -> Memory:
    """Return the machine's total memory, the memory available to this process, and its control group's limit."""
    lines = [line.partition(":") for line in (PROC / "meminfo").read_text().splitlines()]
    kib = {name: int(rest.split()[0]) for name, _, rest in lines}
    limits = [int(value) for value in _settings("memory", "memory.max", "memory.limit_in_bytes") if value.isdecimal()]
    total = kib["MemTotal"] / 2**20
    limit = min(limits, default=math.inf) / GIB
    # cgroup v1 writes "no limit" as a number close to 2**63
    return Memory(total, min(kib["MemAvailable"] / 2**20, limit), limit if limit < total else math.inf)


def cores() -> list[int]:
    """Return the numbers of the cores that this process may run on, in ascending order."""
    return sorted(os.sched_getaffinity(0))


def core_quota() -> float:
    """Return the container's CPU limit in cores (1.5 for `docker run --cpus=1.5`), or infinity if there is none."""
    quotas = []
    for value in _settings("cpu", "cpu.max", "cpu.cfs_quota_us"):
        quota, _, period = value.partition(" ")
        if quota.isdecimal():
            quotas.append(int(quota) / int(period or 100_000))  # cgroup v1: the default period
    return min(quotas, default=math.inf)


def _settings(controller: str, version2: str, version1: str) -> Iterator[str]:
    for line in (PROC / "self" / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = CGROUPS / controllers if controllers else CGROUPS
        group = root / path.lstrip("/")
        # in a container, the mounted root is the container's group, and `path` may not exist under it
        for folder in [group, *group.parents]:
            if folder.is_relative_to(root):
                setting = folder / (version1 if controllers else version2)
                if setting.is_file():
                    yield setting.read_text().strip()


@cache
def describe_device() -> str:
    """Return the GPUs' names, or the processor's name and cores, and the precision: `Intel Xeon, 2 cores, float32`.

    GPU names come from nvidia-smi, because torch would allocate GPU memory to get them.
    """
    device = resolve_device("auto")
    name = _gpus() if device.type == "cuda" else f"{_processor()}, {len(cores())} cores"
    return f"{name}, {compute_dtype(device)}".replace("torch.", "")


def release_gpu_memory() -> None:
    """Release GPU memory that no tensor uses any more, so that other processes, such as the engine, can use it."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def free_memory(device: "torch.device") -> float:
    """Return the GPU's free memory in bytes. For the CPU, return infinity: bits must not depend on what else runs."""
    import torch

    release_gpu_memory()
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else math.inf


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether memory ran out. Except for a GPU's tensors, torch raises other kinds of RuntimeError."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in OUT_OF_MEMORY)


def return_freed_memory() -> None:
    """Return memory that this process has freed to the system. Allocators may otherwise keep more than a gigabyte."""
    for function, *arguments in (("malloc_trim", 0), ("MallocExtension_ReleaseFreeMemory",)):  # of glibc and tcmalloc
        with suppress(AttributeError):  # another one
            getattr(ctypes.CDLL(None), function)(*arguments)


def _gpus() -> str:
    names = output_of("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    return names.replace("\n", " + ") if names else "cuda"


def output_of(*command: str) -> str | None:
    """Return a command's output, or None if the command is missing, fails, or takes more than a minute."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    """Return the processor's name from /proc/cpuinfo. On Arm, where it has none, return implementer and part number."""
    lines = [line.partition(":") for line in (PROC / "cpuinfo").read_text().splitlines()]
    named = {name.strip(): value.strip() for name, _, value in reversed(lines)}
    return named.get("model name") or " ".join(named.get(name, "") for name in ("CPU implementer", "CPU part"))


def resolve_device(setting: str) -> "torch.device":
    """Return the device for the `device` setting: `cpu`, `cuda`, or `auto` (a GPU if there is one, else the CPU)."""
    import torch

    cuda = torch.cuda.is_available() if setting == "auto" else setting == "cuda"
    return torch.device("cuda" if cuda else "cpu")


def tokens_per_pass(setting: int | None, device: "torch.device") -> int:
    """Return how many packed tokens go into a forward pass: the `setting`, or a number that suits the device.

    On a CPU, a pass fits the caches. On a GPU, it is large, because small kernels take longer to launch than to run.
    """
    if setting is not None:
        return setting
    if device.type == "cpu":
        return 1280
    import torch

    return gpu_tokens(torch.cuda.get_device_properties(device).total_memory)


def gpu_tokens(memory_bytes: float) -> int:
    """Return the most packed tokens that a pass should have on a GPU with this much memory."""
    return 4096 * max(1, round(memory_bytes / GIB / 12))


def compute_dtype(device: "torch.device") -> "torch.dtype":
    """Return the precision of trainer, engine and checkpoints: bfloat16 if the device is fast at it, else float32.

    Without AVX-512, AMX or Arm's equivalent, a CPU multiplies bfloat16 numbers one at a time. float32 is many times
    faster there, although float32 weights take twice the memory.
    """
    import torch

    # torch makes this check in its own matrix products, but has no public function for it
    slow = device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.float32 if slow else torch.bfloat16
