"""The limits of control groups, version 1 and 2."""

import math
from pathlib import Path

import pytest

from models.hf import hardware

GIB = 2**30


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("groups", "files", "limit", "quota"),
    [
        ("0::/", {"memory.max": "max", "cpu.max": "max 100000"}, math.inf, math.inf),
        ("0::/", {"memory.max": f"{4 * GIB}", "cpu.max": "150000 100000"}, 4.0, 1.5),
        ("0::/user/night", {"user/memory.max": f"{2 * GIB}", "user/night/memory.max": f"{6 * GIB}"}, 2.0, math.inf),
        (
            "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/",
            {
                "memory/docker/abc/memory.limit_in_bytes": f"{3 * GIB}",
                "memory/memory.limit_in_bytes": "9223372036854771712",  # unlimited
                "cpu,cpuacct/cpu.cfs_quota_us": "200000",
            },
            3.0,
            2.0,
        ),
    ],
    ids=["unlimited", "version 2", "the tightest group", "version 1"],
)
def test_limits_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, files: dict[str, str], limit: float, quota: float
) -> None:
    monkeypatch.setattr(hardware, "PROC", tmp_path / "proc")
    monkeypatch.setattr(hardware, "CGROUPS", tmp_path / "cgroup")
    write(tmp_path / "proc" / "meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n")
    write(tmp_path / "proc" / "self" / "cgroup", f"{groups}\n")
    for name, value in files.items():
        write(tmp_path / "cgroup" / name, f"{value}\n")
    assert hardware.memory() == hardware.Memory(16.0, min(8.0, limit), limit)
    assert hardware.core_quota() == quota
