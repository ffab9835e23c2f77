"""What a night needs of its machine is checked before it writes anything."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home
from flows.run.machine import (
    billions_of_parameters,
    checkpoints_written,
    disk_needed_gb,
    memory_needed_gib,
    require_machine,
)
from models.hf.hardware import Memory, compute_dtype, resolve_device
from tests.refusal import refusal

BYTES = compute_dtype(resolve_device("auto")).itemsize  # of a weight in a checkpoint


def starter(*overrides: str) -> NightConfig:
    return load_night(STARTER, overrides)


def refused(home: Path, *overrides: str) -> str:
    return refusal(require_machine, Home(home), starter(*overrides))


def test_a_home_that_cannot_be_written_to(tmp_path: Path) -> None:
    """Not even by root."""
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    assert refused(file / "school") == (
        f"{file}/school: the home cannot be written to ({file}: Not a directory); "
        "name a folder of your own: NIGHTSCHOOL_HOME=/path/to/school"
    )
    assert file.read_text() == "mine"
    assert refused(Path("/proc/school")).startswith("/proc/school: the home cannot be written to (/proc: ")


def test_too_little_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3_140_000_000))
    assert refused(tmp_path / "school") == (
        f"{tmp_path}/school: 3.1 GB free, but the night needs about {4.78 + 9 * 0.135 * BYTES:.1f} GB; "
        "make room, or name a home on another disk: NIGHTSCHOOL_HOME=/path/to/school"
    )
    require_machine(Home(tmp_path / "school"), starter(), room=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "lora", "needed"),
    [
        ("starter", "null", 2 * 14 * 0.135 + 9 * BYTES * 0.135 + 1),
        ("Qwen/Qwen3-0.6B", "null", 2 * 14 * 0.6 + 9 * BYTES * 0.6 + 1),
        ("Qwen/Qwen3-0.6B", "{rank: 16}", 2 * 14 * 0.6 * 0.016 + 8 * BYTES * 0.6 + 1),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", "null", (28 + 9 * BYTES) * 0.36 + 1),
        ("someone/some-model-v2", "null", (28 + 9 * BYTES) * 1.0 + 1),
        ("{tmp}", "null", (28 + 9 * BYTES) * 0.25 + 1),
    ],
)
def test_the_disk_that_a_night_needs(source: str, lora: str, needed: float, tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as weights:
        weights.truncate(500_000_000)  # a quarter of a billion parameters in bf16
    config = starter(f"student.source={source.replace('{tmp}', str(tmp_path))}", f"lora={lora}")
    assert disk_needed_gb(config) == pytest.approx(needed)
    (tmp_path / "config.json").write_text('{"dtype": "float32"}')  # as Night school itself writes on some CPUs
    assert billions_of_parameters(str(tmp_path)) == 0.125


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["stages=[{grpo: 5}]"], 2 + 2),  # the champion, the day copy, two rounds
        # and the reward model and five lessons
        (["stages=[distill, lessons, {grpo: 1}]", "preference_learning=both"], 3 + 5 + 1),
        (["stages=[distill, {grpo: 5}, distill, {grpo: 5}]"], 2 + 2 + 3),
        (["stages=[distill, {grpo: 5}]", "lora={rank: 8}"], 2 + 1 + 1),
        (["stages=[distill, {grpo: 5}]", "lora={rank: 8, keep: true}"], 2),
    ],
)
def test_the_checkpoints_that_a_night_writes(settings: list[str], expected: int) -> None:
    assert checkpoints_written(starter(*settings)) == expected


def test_too_little_memory_is_said_but_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The need is estimated, and swapping or the end of another program can do."""
    needed = memory_needed_gib(starter())
    for memory, advice in (
        (Memory(24, 20), None),
        (Memory(24, needed - 1), "close other programs"),
        (Memory(needed - 1, needed - 2), "train adapters"),
        (Memory(24, needed - 1, limit=needed - 1), "train adapters"),
    ):
        caplog.clear()
        monkeypatch.setattr("flows.run.machine.memory", lambda memory=memory: memory)
        require_machine(Home(tmp_path / "school"), starter(), room=False)
        assert ("memory: " in caplog.text) == bool(advice)
        assert (advice or "") in caplog.text
    assert memory_needed_gib(starter("lora={rank: 16}")) < needed - 1
    assert memory_needed_gib(starter("student.source=Qwen/Qwen3-0.6B")) > 2 * needed


def test_a_gpu_without_bf16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.run.machine.resolve_device", lambda _: torch.device("cuda"))
    monkeypatch.setattr("flows.run.machine.output_of", lambda *_: "7.5\n6.1")
    assert refused(tmp_path / "school").startswith("the GPU cannot be used: it has no bf16")
    for reported in ("7.5\n8.6", "[N/A]", None):
        monkeypatch.setattr("flows.run.machine.output_of", lambda *_, reported=reported: reported)
        require_machine(Home(tmp_path / "school"), starter())
