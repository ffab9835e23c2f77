"""Store a trainer's state on disk: a file of tensors and then, written last, a JSON note with that file's digest."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conf.storage.durable import room_for, write_atomically
from conf.storage.home import NightError
from models.hf.checkpoint import digest_file

if TYPE_CHECKING:
    from torch import Tensor

TENSORS, NOTE = "optimizer.safetensors", "state.json"
VERSION = 5


class StateError(NightError):
    """A trainer's state is missing, damaged, or belongs to another checkpoint."""


def write_state(folder: Path, weights: Mapping[str, "Tensor"], *, checkpoint: str, step: int, non_finite: int) -> None:
    """Write all that a trainer needs to resume. The note is written last: tensors without a matching note are invalid.

    `weights`: master weights and optimizer state, by kind and name. `checkpoint`: the digest of the checkpoint with the
    same weights. `step`: the number of optimizer steps taken. `non_finite`: how many steps since the last finite one
    had a non-finite loss or gradient. Raises DiskFullError if the disk has no room for the state.
    """
    from safetensors.torch import save_file  # imports torch

    with room_for(folder, sum(tensor.nbytes for tensor in weights.values())):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).unlink(missing_ok=True)
        save_file({**weights}, folder / TENSORS)
        note = {"version": VERSION, "checkpoint": checkpoint, "step": step, "non_finite": non_finite}
        write_atomically(folder / NOTE, json.dumps(note | {"tensors": digest_file(folder / TENSORS)}) + "\n")


def read_state(folder: Path, checkpoint: str | None = None) -> tuple[dict[str, "Tensor"], dict[str, Any]]:
    """Read what `write_state` wrote: the weights, and the note with `checkpoint`, `step` and `non_finite`.

    Raises StateError, with a one-line message, if the state is missing or damaged, or does not belong to the checkpoint
    whose digest is `checkpoint` (None: any).
    """
    from safetensors.torch import load_file

    note = _read_note(folder)
    if checkpoint is not None and note["checkpoint"] != checkpoint:
        raise StateError(
            f"{folder}: this trainer state belongs to the checkpoint {note['checkpoint']}, not to {checkpoint}"
        )
    return load_file(folder / TENSORS), note


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
