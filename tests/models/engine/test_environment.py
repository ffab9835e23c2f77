"""What a process that runs vLLM finds in its environment."""

import os
import subprocess
import sys

import pytest

from models.engine import environment as subject
from models.engine.environment import engine_environment, preload_libraries


def test_private_and_in_one_process() -> None:
    expected = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    assert expected.items() <= engine_environment().items()


@pytest.mark.parametrize(
    ("quota", "wanted", "cores", "bound"),
    [
        (float("inf"), "", [2, 3], {"VLLM_CPU_OMP_THREADS_BIND": "2,3"}),
        (float("inf"), "2", [2, 3], {"VLLM_CPU_OMP_THREADS_BIND": "2,3"}),
        (float("inf"), "1", [2, 3], {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}),
        (1.5, "", [*range(64)], {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "2"}),
    ],
)
def test_threads_are_bound_to_cores_unless_there_are_to_be_fewer(
    monkeypatch: pytest.MonkeyPatch, quota: float, wanted: str, cores: list[int], bound: dict[str, str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    monkeypatch.setattr(subject, "cores", lambda: cores)
    monkeypatch.setattr(subject, "core_quota", lambda: quota)
    assert bound.items() <= engine_environment().items()


def test_the_preloaded_libraries_are_in_the_memory_of_a_process_that_starts_so() -> None:
    libraries = preload_libraries()
    maps = subprocess.run(
        [sys.executable, "-c", "print(open('/proc/self/maps').read())"],
        env={**os.environ, **engine_environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert maps.stderr == ""
    for library in libraries:
        assert library.name.split(".so")[0] in maps.stdout, library
