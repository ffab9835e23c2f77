"""The environment of the processes that run vLLM and the trainer, and what every engine on a CPU is told."""

import math
import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from models.hf.hardware import core_quota, cores

SYSTEM_LIBRARIES = (Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"))

# What `vllm serve` runs. That command cannot start where vLLM's package is the CPU's: it looks for one of its own name.
SERVER = (sys.executable, "-m", "vllm.entrypoints.launchers.api_server.entry")

# Tokens of a block of the key/value cache: only whole ones are shared by the completions of a prompt. vLLM's own for
# CPUs is 128, which no short prompt fills: each of a group's completions would compute it anew. Its kernel asks for 32.
CPU_BLOCK = 32

# An owner's days are private; what the owner has set to something else stays that.
PRIVATE = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def engine_environment(kv_cache_gb: float) -> dict[str, str]:
    """What to set for vLLM on a CPU, with a key/value cache of `kv_cache_gb` GiB.

    vLLM takes whole GiB only: what is between two goes to the larger. Each OpenMP thread has a core of its
    own, except where a container's quota is smaller than its number of cores: there, threads bound to the
    first cores of the host would meet those of every other container.
    """
    preload = [*map(str, preload_libraries()), *filter(None, re.split("[ :]+", os.environ.get("LD_PRELOAD", "")))]
    environment = {
        "VLLM_CPU_KVCACHE_SPACE": str(max(1, math.ceil(kv_cache_gb))),
        # one process instead of two: less memory, and nothing that could outlive the worker
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "GLOO_SOCKET_IFNAME": "lo",  # otherwise it looks its own host name up and listens at what it finds
        **_private(),
    }
    if core_quota() < len(cores()):
        environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(math.ceil(core_quota()))}
    else:
        environment["VLLM_CPU_OMP_THREADS_BIND"] = format_cores(cores())
    if preload:
        environment["LD_PRELOAD"] = ":".join(dict.fromkeys(preload))
    return environment


def server_environment(kv_cache_gb: float) -> dict[str, str]:
    """The whole environment of a vLLM server: as for an engine, but it wants its engine in a process of its own."""
    environment = os.environ | engine_environment(kv_cache_gb)
    del environment["VLLM_ENABLE_V1_MULTIPROCESSING"]
    return environment


def trainer_environment() -> dict[str, str]:
    """What to set for the trainer: on a CPU tcmalloc, which large tensors profit from; libiomp5 gives nothing here."""
    allocator = [str(library) for library in preload_libraries() if "tcmalloc" in library.name]
    return _private() | ({"LD_PRELOAD": allocator[0]} if allocator else {})


def _private() -> dict[str, str]:
    return {name: os.environ.get(name, value) for name, value in PRIVATE.items()}


def preload_libraries() -> list[Path]:
    """The allocator (tcmalloc) and the OpenMP runtime (libiomp5) that make vLLM fast on a CPU, as far as found.

    libiomp5 comes with vllm-cpu; tcmalloc is a system package (Debian: libtcmalloc-minimal4).
    """
    packages = Path(sysconfig.get_path("purelib"))
    tcmalloc = _first(
        "libtcmalloc_minimal.so*",
        [
            packages / "vllm" / "libs",
            *(folder for lib in SYSTEM_LIBRARIES for folder in (lib, *lib.glob("*-linux-gnu"))),
        ],
    )
    libiomp5 = _first("libiomp5.so", [Path(sys.prefix) / "lib", *packages.glob("*/lib"), *packages.glob("*.libs")])
    return [library for library in (tcmalloc, libiomp5) if library]


def format_cores(numbers: Sequence[int]) -> str:
    """Core numbers, ascending, as vLLM wants them: 0, 1, 2, 5 is `0-2,5`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return ",".join("-".join(map(str, ends)) for ends in ranges)


def _first(pattern: str, folders: Sequence[Path]) -> Path | None:
    # LD_PRELOAD is split at blanks and colons: a library in such a place cannot be named there
    found = (path for folder in folders for path in sorted(folder.glob(pattern)) if not set(" :") & set(str(path)))
    return next(found, None)
