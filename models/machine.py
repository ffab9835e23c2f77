"""What of the machine this process may use: cores and memory, within the limits of its control groups."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
GIB = 2**30


@dataclass(frozen=True)
class Memory:
    """Main memory in GiB. `limit` is what a container may take of it, infinite where nothing limits it."""

    total: float
    available: float
    limit: float = math.inf


def memory() -> Memory:
    """The memory of the machine, what of it is free or can be freed, and the control group's limit."""
    kib = {}
    for line in (PROC / "meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        kib[name] = int(rest.split()[0])
    limits = [int(value) for value in _settings("memory", "memory.max", "memory.limit_in_bytes") if value.isdecimal()]
    total = kib["MemTotal"] / 2**20
    limit = min(limits, default=math.inf) / GIB
    # version 1 writes "no limit" as a number close to 2**63
    return Memory(total, min(kib["MemAvailable"] / 2**20, limit), limit if limit < total else math.inf)


def cores() -> list[int]:
    """The numbers of the cores that this process may run on, ascending."""
    return sorted(os.sched_getaffinity(0))


def core_quota() -> float:
    """How many cores' worth of time a container may use (`docker run --cpus=1.5`), infinite without a limit."""
    quotas = []
    for value in _settings("cpu", "cpu.max", "cpu.cfs_quota_us"):
        quota, _, period = value.partition(" ")
        if quota.isdecimal():
            quotas.append(int(quota) / int(period or 100_000))  # version 1's period; nobody changes it
    return min(quotas, default=math.inf)


def _settings(controller: str, version2: str, version1: str) -> Iterator[str]:
    """The values of one setting in this process's control group and all groups around it."""
    for line in (PROC / "self" / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = CGROUPS / controllers if controllers else CGROUPS
        group = root / path.lstrip("/")
        # Inside a container the mounted root is the container's own group, and `path` may not be there.
        for folder in [group, *group.parents]:
            if folder.is_relative_to(root):
                setting = folder / (version1 if controllers else version2)
                if setting.is_file():
                    yield setting.read_text().strip()
