"""What the freezes of all nights have taken of the journal: bytes of its files."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.home import NightError
from tasks.stage import MANIFEST, is_whole

OFFSETS = "offsets.json"  # of each journal file that this night took of, the bytes taken by it and those before it
TAKEN = "taken.json"  # the model that studied, and of each journal file, from where to where this night took it


class DamagedFreezeError(NightError):
    """What a night took of the journal is not known any more."""


@dataclass(frozen=True)
class Taken:
    """A part of a journal file, from one byte offset to another, and the night that took it."""

    night: str
    file: str
    start: int
    end: int


def consumed(nights: Path) -> dict[str, int]:
    """How many bytes of each journal file the committed freezes of all nights have taken.

    Raises DamagedFreezeError where that is not known of one any more: a lesson would be learnt twice, or never.
    """
    taken: dict[str, int] = {}
    for manifest in nights.glob(f"????-??-??/freeze_journal/{MANIFEST}"):
        for name, offset in _noted(manifest, OFFSETS).items():
            taken[name] = max(offset, taken.get(name, 0))
    return taken


def taken_before(nights: Path, date: str, model: str) -> Iterator[Taken]:
    """What the nights before a date took for a model, the oldest night first.

    Raises DamagedFreezeError where that is not known of one any more.
    """
    for manifest in sorted(nights.glob(f"????-??-??/freeze_journal/{MANIFEST}")):
        night = manifest.parent.parent.name
        if night >= date or TAKEN not in json.loads(manifest.read_text())["outputs"]:  # an earlier version's has none
            continue
        noted = _noted(manifest, TAKEN)
        if noted["model"] == model:
            yield from (Taken(night, name, start, end) for name, (start, end) in noted["bytes"].items())


def _noted(manifest: Path, name: str) -> dict[str, Any]:
    file = manifest.parent / name
    if not is_whole(file):
        raise DamagedFreezeError(
            f"{file}: it was damaged: what that night took of the journal is not known; restore the file, or remove "
            f"{manifest.parent}, and its lines are taken once more"
        )
    return json.loads(file.read_text())
