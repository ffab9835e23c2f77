"""Store a trainer's state on disk: a file of tensors and then, written last, a JSON note with that file's digest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conf.storage.durable import room_for, write_atomically
from conf.storage.home import NightError
from models.hf.checkpoint import digest_file

if TYPE_CHECKING:
    from torch import Tensor

TENSORS, NOTE = "optimizer.safetensors", "state.json"
VERSION = 4
RANDOM = "random/"  # prefix of the random generators' names among the tensors


class StateError(NightError):
    """A trainer's state is missing, damaged, or belongs to another checkpoint."""


@dataclass(frozen=True)
class TrainerState:
    """Everything that a trainer needs to resume.

    `weights`: master weights and optimizer state, by kind and name. `random`: the random generators' states, by device.
    `step`: the number of optimizer steps taken. `non_finite`: how many steps since the last finite one had a non-finite
    loss or gradient. `checkpoint`: the digest of the checkpoint with the same weights.
    """

    weights: Mapping[str, "Tensor"]
    random: Mapping[str, "Tensor"]
    step: int
    non_finite: int
    checkpoint: str


def write_state(folder: Path, state: TrainerState) -> None:
    """Write a trainer state to a folder. The note is written last: tensors without a matching note are invalid.

    Raises DiskFullError if the disk has no room for the state.
    """
    from safetensors.torch import save_file  # imports torch

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
    """Read the trainer state that `write_state` wrote.

    Raises StateError, with a one-line message, if the state is missing or damaged, or does not belong to the checkpoint
    whose digest is `checkpoint` (None: any).
    """
    from safetensors.torch import load_file

    note = _read_note(folder)
    if checkpoint is not None and note["checkpoint"] != checkpoint:
        raise StateError(
            f"{folder}: this trainer state belongs to the checkpoint {note['checkpoint']}, not to {checkpoint}"
        )
    weights = load_file(folder / TENSORS)
    random = {key.removeprefix(RANDOM): weights.pop(key) for key in list(weights) if key.startswith(RANDOM)}
    return TrainerState(weights, random, note["step"], note["non_finite"], note["checkpoint"])


def _read_note(folder: Path) -> dict[str, Any]:
    try:
        note = json.loads((folder / NOTE).read_text())
        if note["version"] == VERSION and note["tensors"] == digest_file(folder / TENSORS):
            return note
    except OSError as error:
        raise StateError(f"{folder}: no complete trainer state ({error.strerror}: {error.filename})") from error
    except (ValueError, KeyError, TypeError):
        pass
    raise StateError(f"{folder}: the trainer state is damaged; start the night over with --fresh")
