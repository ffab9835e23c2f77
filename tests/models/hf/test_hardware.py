"""The limits of control groups, version 1 and 2, as they are mounted on a host and inside a container."""

import math
from pathlib import Path

import pytest

from models.hf import hardware

MEMINFO = "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailable:    8388608 kB\n"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hardware, "PROC", tmp_path / "proc")
    monkeypatch.setattr(hardware, "CGROUPS", tmp_path / "cgroup")
    write(tmp_path / "proc" / "meminfo", MEMINFO)
    write(tmp_path / "proc" / "self" / "cgroup", "0::/\n")
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


GIB = 2**30


@pytest.mark.parametrize(
    ("files", "limit", "quota"),
    [
        ({}, math.inf, math.inf),
        ({"memory.max": f"{4 * GIB}", "cpu.max": "150000 100000"}, 4.0, 1.5),
        ({"memory.max": "max", "cpu.max": "max 100000"}, math.inf, math.inf),
        (
            {
                "memory/docker/abc/memory.limit_in_bytes": f"{3 * GIB}",
                "memory/memory.limit_in_bytes": "9223372036854771712",  # unlimited
                "cpu,cpuacct/cpu.cfs_quota_us": "200000",
            },
            3.0,
            2.0,
        ),
        (
            {"memory/memory.limit_in_bytes": "9223372036854771712", "cpu,cpuacct/cpu.cfs_quota_us": "-1"},
            math.inf,
            math.inf,
        ),
    ],
    ids=["none", "version 2", "version 2, unlimited", "version 1", "version 1, unlimited"],
)
def test_limits_of_a_container(fake: Path, files: dict[str, str], limit: float, quota: float) -> None:
    if any("/" in name for name in files):
        write(fake / "proc" / "self" / "cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n")
    for name, value in files.items():
        write(fake / "cgroup" / name, f"{value}\n")
    assert hardware.memory() == hardware.Memory(16.0, min(8.0, limit), limit)
    assert hardware.core_quota() == quota


def test_the_tightest_group_around_the_process_counts(fake: Path) -> None:
    write(fake / "proc" / "self" / "cgroup", "0::/user.slice/night.service\n")
    write(fake / "cgroup" / "user.slice" / "memory.max", f"{2 * 2**30}\n")
    write(fake / "cgroup" / "user.slice" / "night.service" / "memory.max", f"{6 * 2**30}\n")
    write(fake / "cgroup" / "elsewhere" / "memory.max", "1\n")
    assert hardware.memory().limit == 2.0


def test_this_machine() -> None:
    there = hardware.memory()
    assert 0 < there.available <= there.total
    assert hardware.cores()
