"""A trainer's state on disk: what was written is what is read, and anything else is refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from models.optim.trainer_state import NOTE, TENSORS, StateError, read_state, write_state
from tests.damage import flip_a_bit

WEIGHTS = {"weight/a": torch.tensor([1.0, 2.0]), "exp_avg/a": torch.tensor(3.0)}
NEXT: dict[str, Any] = {"checkpoint": "beef17", "step": 4, "non_finite": 0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_state(tmp_path / "state", WEIGHTS, checkpoint="cafe42", step=3, non_finite=2)
    return tmp_path / "state"


def test_the_state_of_another_checkpoint_is_refused(folder: Path) -> None:
    assert read_state(folder, "cafe42")[1]["step"] == 3
    with pytest.raises(StateError, match="cafe42.*beef17"):
        read_state(folder, "beef17")


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def swap_tensors(folder: Path) -> None:
    write_state(folder.with_name("next"), {"weight/a": torch.zeros(2)}, **NEXT)
    (folder.with_name("next") / TENSORS).replace(folder / TENSORS)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda folder: (folder / NOTE).unlink(), "no complete trainer state .No such file"),
        (lambda folder: (folder / TENSORS).unlink(), "no complete trainer state .No such file"),
        (lambda folder: cut_in_half(folder / NOTE), "the trainer state is damaged"),
        (lambda folder: (folder / NOTE).write_text(json.dumps({"version": 1})), "the trainer state is damaged"),
        (lambda folder: flip_a_bit(folder / TENSORS), "the trainer state is damaged"),
        (swap_tensors, "the trainer state is damaged"),
    ],
)
def test_a_damaged_state_is_refused(folder: Path, damage: Callable[[Path], object], line: str) -> None:
    damage(folder)
    with pytest.raises(StateError, match=f"{folder}: {line}") as refused:
        read_state(folder, "cafe42")
    assert "\n" not in str(refused.value)


def test_an_interrupted_write_over_an_older_state_leaves_no_state(folder: Path) -> None:
    """The older note must not stand beside the newer tensors."""
    shared = torch.zeros(2)  # which safetensors refuses to write twice
    with pytest.raises(RuntimeError, match="weight/b"):
        write_state(folder, {"weight/a": shared, "weight/b": shared}, **NEXT)
    with pytest.raises(StateError, match="no complete trainer state"):
        read_state(folder)
