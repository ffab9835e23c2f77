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


def test_without_limits(fake: Path) -> None:
    assert hardware.memory() == hardware.Memory(16.0, 8.0, math.inf)
    assert hardware.core_quota() == math.inf


def test_version_2_in_a_container(fake: Path) -> None:
    write(fake / "cgroup" / "memory.max", f"{4 * 2**30}\n")
    write(fake / "cgroup" / "cpu.max", "150000 100000\n")
    assert hardware.memory() == hardware.Memory(16.0, 4.0, 4.0)
    assert hardware.core_quota() == 1.5


def test_version_2_unlimited_by_name(fake: Path) -> None:
    write(fake / "cgroup" / "memory.max", "max\n")
    write(fake / "cgroup" / "cpu.max", "max 100000\n")
    assert hardware.memory().limit == hardware.core_quota() == math.inf


def test_the_tightest_group_around_the_process_counts(fake: Path) -> None:
    write(fake / "proc" / "self" / "cgroup", "0::/user.slice/night.service\n")
    write(fake / "cgroup" / "user.slice" / "memory.max", f"{2 * 2**30}\n")
    write(fake / "cgroup" / "user.slice" / "night.service" / "memory.max", f"{6 * 2**30}\n")
    write(fake / "cgroup" / "elsewhere" / "memory.max", "1\n")
    assert hardware.memory().limit == 2.0


def test_version_1(fake: Path) -> None:
    write(fake / "proc" / "self" / "cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n")
    write(fake / "cgroup" / "memory" / "docker" / "abc" / "memory.limit_in_bytes", f"{3 * 2**30}\n")
    write(fake / "cgroup" / "memory" / "memory.limit_in_bytes", "9223372036854771712\n")
    write(fake / "cgroup" / "cpu,cpuacct" / "cpu.cfs_quota_us", "200000\n")
    assert hardware.memory().limit == 3.0
    assert hardware.core_quota() == 2.0


def test_version_1_unlimited(fake: Path) -> None:
    write(fake / "proc" / "self" / "cgroup", "5:memory:/\n4:cpu:/\n")
    write(fake / "cgroup" / "memory" / "memory.limit_in_bytes", "9223372036854771712\n")
    write(fake / "cgroup" / "cpu" / "cpu.cfs_quota_us", "-1\n")
    assert hardware.memory() == hardware.Memory(16.0, 8.0, math.inf)
    assert hardware.core_quota() == math.inf


def test_this_machine() -> None:
    there = hardware.memory()
    assert 0 < there.available <= there.total
    assert hardware.cores()
