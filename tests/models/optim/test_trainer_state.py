"""A trainer's state on the disk: what was written is what is read, and anything else is refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from models.optim.trainer_state import NOTE, TENSORS, StateError, TrainerState, read_state, write_state

STATE = TrainerState(
    weights={"weight/a": torch.tensor([1.0, 2.0]), "exp_avg/a": torch.tensor(3.0)},
    random={"cpu": torch.arange(16, dtype=torch.uint8)},
    step=3,
    non_finite=2,
    checkpoint="cafe42",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_state(tmp_path / "state", STATE)
    return tmp_path / "state"


def test_there_and_back(folder: Path) -> None:
    found = read_state(folder, "cafe42")
    assert (found.step, found.non_finite, found.checkpoint) == (3, 2, "cafe42")
    assert found.weights.keys() == {"weight/a", "exp_avg/a"}
    assert found.weights["weight/a"].tolist() == [1.0, 2.0]
    assert found.weights["exp_avg/a"].item() == 3.0
    assert found.random["cpu"].equal(torch.arange(16, dtype=torch.uint8))
    assert {file.name for file in folder.iterdir()} == {TENSORS, NOTE}


def test_the_note_says_what_belongs_together(folder: Path) -> None:
    note = json.loads((folder / NOTE).read_text())
    assert note.keys() == {"version", "checkpoint", "step", "non_finite", "tensors"}
    assert (note["checkpoint"], note["step"]) == ("cafe42", 3)
    assert len(note["tensors"]) == 64  # a SHA-256


def test_the_state_of_another_checkpoint(folder: Path) -> None:
    with pytest.raises(StateError, match="belongs to the checkpoint cafe42, not to beef17"):
        read_state(folder, "beef17")


def no_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def no_note(folder: Path) -> None:
    (folder / NOTE).unlink()


def no_tensors(folder: Path) -> None:
    (folder / TENSORS).unlink()


def half_a_note(folder: Path) -> None:
    (folder / NOTE).write_text((folder / NOTE).read_text()[:30])


def a_note_without_a_step(folder: Path) -> None:
    note = json.loads((folder / NOTE).read_text())
    (folder / NOTE).write_text(json.dumps({key: value for key, value in note.items() if key != "step"}))


def a_list_for_a_note(folder: Path) -> None:
    (folder / NOTE).write_text("[]")


def another_version(folder: Path) -> None:
    (folder / NOTE).write_text('{"version": 1, "step": 3}')  # as it was written before there were digests


def a_flipped_bit(folder: Path) -> None:
    content = bytearray((folder / TENSORS).read_bytes())
    content[-1] ^= 1
    (folder / TENSORS).write_bytes(content)


def half_the_tensors(folder: Path) -> None:
    content = (folder / TENSORS).read_bytes()
    (folder / TENSORS).write_bytes(content[: len(content) // 2])


def the_tensors_of_another_step(folder: Path) -> None:
    write_state(folder.with_name("next"), TrainerState({"weight/a": torch.zeros(2)}, {}, 4, 0, "beef17"))
    (folder.with_name("next") / TENSORS).replace(folder / TENSORS)


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (no_folder, "no whole trainer state is here .No such file"),
    (no_note, "no whole trainer state is here .No such file"),
    (no_tensors, "no whole trainer state is here .No such file"),
    (half_a_note, "state.json: it was damaged"),
    (a_note_without_a_step, "state.json: it was damaged"),
    (a_list_for_a_note, "state.json: it was damaged"),
    (another_version, "it has version 1, and this program reads 3"),
    (a_flipped_bit, "it is not what was written"),
    (half_the_tensors, "it is not what was written"),
    (the_tensors_of_another_step, "it is not what was written"),
]


@pytest.mark.parametrize(("damage", "line"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_a_damaged_state_is_refused(folder: Path, damage: Callable[[Path], None], line: str) -> None:
    damage(folder)
    with pytest.raises(StateError, match=line) as refused:
        read_state(folder, "cafe42")
    assert "\n" not in str(refused.value)
    assert str(folder) in str(refused.value)


def test_a_write_over_an_older_state_that_broke_off(folder: Path) -> None:
    """The older one's note does not stand beside the newer one's tensors."""
    twice = torch.zeros(2)  # which safetensors does not write
    torn = TrainerState({"weight/a": twice, "weight/b": twice}, {}, 4, 0, "beef17")
    with pytest.raises(RuntimeError, match="weight/b"):
        write_state(folder, torn)
    with pytest.raises(StateError, match="no whole trainer state"):
        read_state(folder)
