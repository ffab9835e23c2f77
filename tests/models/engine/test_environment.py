"""What a process that runs vLLM finds in its environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.engine import environment as subject
from models.engine.environment import engine_environment, format_cores, preload_libraries


@pytest.mark.parametrize(
    ("numbers", "ranges"),
    [([0, 1], "0-1"), ([0], "0"), ([0, 1, 2, 5], "0-2,5"), ([1, 3, 5], "1,3,5"), ([4, 5, 8, 9], "4-5,8-9")],
)
def test_core_ranges(numbers: list[int], ranges: str) -> None:
    assert format_cores(numbers) == ranges


def test_private_in_one_process_and_a_cache_of_whole_gib() -> None:
    expected = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "2",
    }
    assert expected.items() <= engine_environment(1.5).items()
    assert engine_environment(0.25)["VLLM_CPU_KVCACHE_SPACE"] == "1"


@pytest.mark.parametrize(
    ("quota", "cores", "bound"),
    [
        (float("inf"), [2, 3], {"VLLM_CPU_OMP_THREADS_BIND": "2-3"}),
        (2.0, [*range(64)], {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "2"}),
    ],
)
def test_threads_are_bound_to_cores_unless_a_container_has_a_quota(
    monkeypatch: pytest.MonkeyPatch, quota: float, cores: list[int], bound: dict[str, str]
) -> None:
    monkeypatch.setattr(subject, "cores", lambda: cores)
    monkeypatch.setattr(subject, "core_quota", lambda: quota)
    assert bound.items() <= engine_environment(1).items()


def test_the_preloaded_libraries_are_in_the_memory_of_a_process_that_starts_so() -> None:
    libraries = preload_libraries()
    maps = subprocess.run(
        [sys.executable, "-c", "print(open('/proc/self/maps').read())"],
        env={**os.environ, **engine_environment(1)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert maps.stderr == ""
    for library in libraries:
        assert library.name.split(".so")[0] in maps.stdout, library


def test_libraries_are_looked_for_in_the_environment_and_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tcmalloc = tmp_path / "usr" / "x86_64-linux-gnu" / "libtcmalloc_minimal.so.4"
    libiomp5 = tmp_path / "venv" / "lib" / "libiomp5.so"
    monkeypatch.setattr(subject, "SYSTEM_LIBRARIES", (tmp_path / "usr",))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(subject.sysconfig, "get_path", lambda _: str(tmp_path / "venv" / "site-packages"))
    assert preload_libraries() == []
    for file in (tcmalloc, libiomp5):
        file.parent.mkdir(parents=True)
        file.touch()
    assert preload_libraries() == [tcmalloc, libiomp5]
    unnameable = tmp_path / "my school" / tcmalloc.name  # LD_PRELOAD is split at blanks
    unnameable.parent.mkdir()
    unnameable.touch()
    with monkeypatch.context() as patch:
        patch.setattr(subject, "SYSTEM_LIBRARIES", (unnameable.parent,))
        assert preload_libraries() == [libiomp5]
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/other.so")
    assert engine_environment(1)["LD_PRELOAD"] == f"{tcmalloc}:{libiomp5}:/usr/lib/other.so"
