"""Whether this machine's sandbox can hold the programs that a model writes."""

from collections.abc import Collection, Iterator

from conf.schema import NightConfig, SandboxConfig
from conf.sections.benchmark import PROGRAMS
from conf.storage.home import InputError
from flows.run.machine import Finding
from rewards.programs.policy import missing_layers, tolerated
from rewards.sandbox import Layer, Sandbox, SandboxUnavailable

NAMES: dict[Layer, str] = {"seccomp": "seccomp", "landlock": "Landlock"}
ELSEWHERE = "no program can be judged here; leave mbpp and humaneval out, or run on another machine"


def layers(config: NightConfig) -> Iterator[Finding]:
    """Report the kernel's layers. A missing layer is an error where the night needs it, else a warning."""
    missing = missing_layers()
    for layer, name in NAMES.items():
        if layer in missing:
            needed = program_benchmarks(config) and layer not in config.sandbox.allow_missing
            what, _, advice = missing[layer].removeprefix(f"{name}: ").partition("; ")
            without = f"or go without it: --set 'sandbox.allow_missing=[{layer}]'"
            yield Finding(name, "error" if needed else "warning", what, f"{advice or ELSEWHERE}; {without}")
        else:
            yield Finding(name, "ok", "works")


def program_benchmarks(config: NightConfig) -> set[str]:
    """Return the night's benchmarks whose answers are programs, of training and exam."""
    named = {entry.name for entry in config.benchmarks} | {part.benchmark for part in config.exam.parts}
    return named & set(PROGRAMS)


def require_sandbox(names: Collection[str], config: SandboxConfig) -> None:
    """Enter the sandbox once if one of these benchmarks needs it: its own canaries test it."""
    needing = sorted(set(names) & set(PROGRAMS))
    if not needing:
        return
    try:
        with Sandbox(without=tolerated(config)):
            pass
    except SandboxUnavailable as error:
        reason = " ".join(str(error).split())
        raise InputError(f"sandbox: {' and '.join(needing)} cannot be judged on this machine: {reason}") from error
