"""Which layers of the sandbox this machine lacks, and a sandbox that goes without those that it may lack."""

import os
from collections.abc import Callable

from conf.schema import SandboxConfig
from rewards.jail import policy
from rewards.sandbox import Layer, Sandbox


def missing_layers() -> dict[Layer, str]:
    """The layers that the kernel, or a library that this needs, does not have here: why, and what would bring them."""
    missing: dict[Layer, str] = {}
    attempts: dict[Layer, Callable[[], object]] = {"seccomp": policy.seccomp_program, "landlock": _make_ruleset}
    for layer, attempt in attempts.items():
        try:
            attempt()
        except policy.SandboxUnavailable as reason:
            missing[layer] = str(reason)
    return missing


def tolerated(config: SandboxConfig) -> frozenset[Layer]:
    """The layers that are missing here and that the configuration allows to be missing."""
    return frozenset(missing_layers().keys() & set(config.allow_missing)) if config.allow_missing else frozenset()


def configured_sandbox(config: SandboxConfig) -> Sandbox:
    """The sandbox as configured, not entered yet."""
    return Sandbox(config.workers, without=tolerated(config))


def _make_ruleset() -> None:
    os.close(policy.landlock_ruleset(()))
