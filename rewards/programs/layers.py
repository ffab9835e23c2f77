"""Find the sandbox layers that this machine lacks, and build a sandbox without those that it may lack."""

import os
from collections.abc import Callable

from conf.schema import SandboxConfig
from rewards.programs import policy
from rewards.sandbox import Layer, Sandbox


def missing_layers() -> dict[Layer, str]:
    """Return the layers that the kernel or a library lacks here, each with the reason and the remedy."""
    missing: dict[Layer, str] = {}
    attempts: dict[Layer, Callable[[], object]] = {"seccomp": policy.seccomp_program, "landlock": _make_ruleset}
    for layer, attempt in attempts.items():
        try:
            attempt()
        except policy.SandboxUnavailable as reason:
            missing[layer] = str(reason)
    return missing


def tolerated(config: SandboxConfig) -> frozenset[Layer]:
    """Return the layers that are missing here and that the configuration allows to be missing."""
    return frozenset(missing_layers().keys() & set(config.allow_missing)) if config.allow_missing else frozenset()


def configured_sandbox(config: SandboxConfig) -> Sandbox:
    """Return the sandbox as configured, not entered yet."""
    return Sandbox(without=tolerated(config))


def _make_ruleset() -> None:
    os.close(policy.landlock_ruleset(()))
