"""What a checkpoint computes on, as far as its answers depend on it."""

import subprocess
from functools import cache

import torch

from models.machine import PROC, cores
from models.precision import computed_in


@cache
def device() -> str:
    """The GPUs or the processor by name, the cores in use, and the precision: `Intel Xeon, 2 cores, float32`.

    A GPU's name is asked of its driver's own program: torch would take memory on the GPU for it.
    """
    if torch.cuda.is_available():
        return f"{_gpus()}, {computed_in(torch.device('cuda'))}".replace("torch.", "")
    return f"{_processor()}, {len(cores())} cores, {computed_in(torch.device('cpu'))}".replace("torch.", "")


def give_back() -> None:
    """Gives the GPU's memory that no tensor holds any more back to who else computes there, such as the engine."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _gpus() -> str:
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return "cuda"
    return " + ".join(found.split("\n")).strip(" +")


def _processor() -> str:
    """As /proc/cpuinfo names it; an Arm processor has no name there, but numbers of its maker and part."""
    lines = [line.partition(":") for line in (PROC / "cpuinfo").read_text().splitlines()]
    named = {name.strip(): value.strip() for name, _, value in reversed(lines)}
    return named.get("model name") or " ".join(named.get(name, "") for name in ("CPU implementer", "CPU part"))
