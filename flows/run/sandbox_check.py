"""What holds the programs that a model writes on this machine, and whether a night that runs some may begin."""

from collections.abc import Collection, Iterator

from conf.schema import NightConfig, SandboxConfig
from conf.sections.benchmark import PROGRAMS
from conf.storage.home import InputError
from flows.run.finding import Finding
from rewards.jail.layers import configured_sandbox, missing_layers
from rewards.sandbox import Layer, SandboxUnavailable

NAMES: dict[Layer, str] = {"seccomp": "seccomp", "landlock": "Landlock"}
ELSEWHERE = "no program can be judged here; leave mbpp and humaneval out, or run on another machine"


def layers(config: NightConfig | None) -> Iterator[Finding]:
    """What the kernel offers. A layer that the night cannot do without is an error, any other a warning."""
    missing = missing_layers()
    for layer, name in NAMES.items():
        if layer in missing:
            needed = config is not None and programs(config) and layer not in config.sandbox.allow_missing
            what, _, advice = missing[layer].removeprefix(f"{name}: ").partition("; ")
            accept = f"or go without it: --set 'sandbox.allow_missing=[{layer}]'"
            yield Finding(name, "error" if needed else "warning", what, f"{advice or ELSEWHERE}; {accept}")
        else:
            yield Finding(name, "ok", "works")


def sandbox(config: NightConfig | None) -> Iterator[Finding]:
    """Whether the sandbox holds, for a night that needs it: by trying."""
    if config is None or not programs(config):
        return
    try:
        require_sandbox(programs(config), config.sandbox)
    except InputError as error:
        yield Finding("sandbox", "error", str(error), ELSEWHERE)
    else:
        yield Finding("sandbox", "ok", f"holds, for {' and '.join(sorted(programs(config)))}")


def programs(config: NightConfig) -> set[str]:
    """The night's benchmarks whose answers are programs, of training and exam."""
    named = {entry.name for entry in config.benchmarks} | {part.benchmark for part in config.exam.parts}
    return named & set(PROGRAMS)


def require_sandbox(names: Collection[str], config: SandboxConfig) -> None:
    """Enters the sandbox once where one of the benchmarks needs it; its own canaries try it.

    Raises InputError, in one line, where it cannot be had: what is missing, and how to install it.
    """
    needing = sorted(set(names) & set(PROGRAMS))
    if not needing:
        return
    try:
        with configured_sandbox(config):
            pass
    except SandboxUnavailable as error:
        reason = " ".join(str(error).split())
        raise InputError(f"sandbox: {' and '.join(needing)} cannot be judged on this machine: {reason}") from error
