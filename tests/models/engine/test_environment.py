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


@pytest.mark.parametrize(("asked", "given"), [(2.0, "2"), (0.25, "1"), (1.5, "2"), (4, "4")])
def test_the_cache_is_given_in_whole_gib_and_never_less_than_asked(asked: float, given: str) -> None:
    assert engine_environment(asked)["VLLM_CPU_KVCACHE_SPACE"] == given


def test_nothing_phones_home_and_the_engine_stays_in_its_worker() -> None:
    environment = engine_environment(1)
    assert environment["VLLM_NO_USAGE_STATS"] == environment["DO_NOT_TRACK"] == "1"
    assert environment["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert environment["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"


def test_threads_are_bound_to_the_cores_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "cores", lambda: [2, 3])
    monkeypatch.setattr(subject, "core_quota", lambda: float("inf"))
    assert engine_environment(1)["VLLM_CPU_OMP_THREADS_BIND"] == "2-3"


def test_a_container_with_a_quota_gets_that_many_threads_bound_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "cores", lambda: list(range(64)))
    monkeypatch.setattr(subject, "core_quota", lambda: 2.0)
    environment = engine_environment(1)
    assert (environment["VLLM_CPU_OMP_THREADS_BIND"], environment["OMP_NUM_THREADS"]) == ("nobind", "2")


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
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/other.so")
    assert engine_environment(1)["LD_PRELOAD"] == f"{tcmalloc}:{libiomp5}:/usr/lib/other.so"


def test_a_library_that_ld_preload_could_not_name_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "my school" / "libtcmalloc_minimal.so.4"
    library.parent.mkdir()
    library.touch()
    monkeypatch.setattr(subject, "SYSTEM_LIBRARIES", (library.parent,))
    assert library not in preload_libraries()
