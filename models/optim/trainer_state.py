"""A trainer's state on the disk: its tensors, and a note of where they stand that proves them whole."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from conf.storage.durable import room_for, write_atomically
from conf.storage.home import NightError
from models.checkpoint import digest_file

TENSORS, NOTE = "optimizer.safetensors", "state.json"
VERSION = 3
RANDOM = "random/"  # in front of a generator's name among the tensors


class StateError(NightError):
    """A trainer's state is missing, damaged, or not the one that was asked for."""


@dataclass(frozen=True)
class TrainerState:
    """Everything that a trainer goes on from.

    `weights`: master weights and the optimizer's own, by kind and name; `random`: the random generators, by device;
    `step`: optimizer steps taken, which the learning rate follows too; `non_finite`: how many of the last in a row were
    not, for want of a finite gradient; `checkpoint`: digest of the checkpoint that has the same weights.
    """

    weights: Mapping[str, Tensor]
    random: Mapping[str, Tensor]
    step: int
    non_finite: int
    checkpoint: str


def write_state(folder: Path, state: TrainerState) -> None:
    """Writes a state into a folder, the note last: without it, or with another's, the tensors do not count.

    Raises DiskFullError where there is no room for it.
    """
    random = {f"{RANDOM}{device}": generator for device, generator in state.random.items()}
    tensors = {**state.weights, **random}
    with room_for(folder, sum(tensor.nbytes for tensor in tensors.values())):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).unlink(missing_ok=True)
        save_file(tensors, folder / TENSORS)
        note = {
            "version": VERSION,
            "checkpoint": state.checkpoint,
            "step": state.step,
            "non_finite": state.non_finite,
            "tensors": digest_file(folder / TENSORS),
        }
        write_atomically(folder / NOTE, json.dumps(note) + "\n")


def read_state(folder: Path, checkpoint: str | None = None) -> TrainerState:
    """Reads what `write_state` wrote.

    Raises StateError, in one line, where the state is missing, halved or changed, or does not belong to `checkpoint`
    (a digest; None: whichever).
    """
    note = _checked_note(folder, checkpoint)
    weights = load_file(folder / TENSORS)
    random = {key.removeprefix(RANDOM): weights.pop(key) for key in list(weights) if key.startswith(RANDOM)}
    return TrainerState(weights, random, note["step"], note["non_finite"], note["checkpoint"])


def state_is_whole(folder: Path, checkpoint: str) -> bool:
    """Whether a trainer could go on from this folder to what comes after the checkpoint of this digest."""
    try:
        _checked_note(folder, checkpoint)
    except StateError:
        return False
    return True


def _checked_note(folder: Path, checkpoint: str | None) -> dict[str, Any]:
    try:
        note = json.loads((folder / NOTE).read_text())
        if note["version"] != VERSION:
            raise StateError(f"{folder / NOTE}: it has version {note['version']}, and this program reads {VERSION}")
        if digest_file(folder / TENSORS) != note["tensors"]:
            raise StateError(f"{folder / TENSORS}: it is not what was written: no trainer can go on from it")
        belongs, _, _ = note["checkpoint"], note["step"], note["non_finite"]
    except OSError as error:
        raise StateError(f"{folder}: no whole trainer state is here ({error.strerror}: {error.filename})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"{folder / NOTE}: it was damaged: no trainer can go on from it") from error
    if checkpoint is not None and belongs != checkpoint:
        raise StateError(f"{folder}: this trainer state belongs to the checkpoint {belongs}, not to {checkpoint}")
    return note
