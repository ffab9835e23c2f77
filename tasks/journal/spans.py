"""What the freezes of all nights have taken of the journal: bytes of its files."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.home import NightError
from tasks.stage import MANIFEST, is_whole

# The model that studied; of each journal file the `bytes` that this night took, as spans from one offset to another,
# and those of earlier nights that it read again (`replayed`).
TAKEN = "taken.json"

Spans = Sequence[tuple[int, int]]


class DamagedFreezeError(NightError):
    """What a night took of the journal is not known any more."""


@dataclass(frozen=True)
class Taken:
    """A part of a journal file, from one byte offset to another, and the night that took it."""

    night: str
    file: str
    start: int
    end: int


def note_taken(folder: Path, model: str, taken: Mapping[str, Spans], replayed: Iterable[Taken]) -> None:
    """Writes what a night's freeze has taken into its folder."""
    again: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for part in replayed:
        again[part.file].append((part.start, part.end))
    (folder / TAKEN).write_text(json.dumps({"model": model, "bytes": taken, "replayed": again}))


def consumed(nights: Path) -> dict[str, Spans]:
    """Which bytes of each journal file the committed freezes of all nights have taken.

    Raises DamagedFreezeError where that is not known of one any more: a lesson would be learnt twice, or never.
    """
    taken: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for freeze in _freezes(nights):
        for name, spans in _noted(freeze)["bytes"].items():
            taken[name] += [(start, end) for start, end in spans]
    return {name: sorted(spans) for name, spans in taken.items()}


def free(taken: Spans) -> Iterator[tuple[int, int | None]]:
    """What lies between the spans of a file that were taken; the last of it goes on to the file's end (None)."""
    start = 0
    for begin, end in taken:
        if begin > start:
            yield start, begin
        start = max(start, end)
    yield start, None


def taken_before(nights: Path, date: str, model: str) -> Iterator[Taken]:
    """What the nights before a date took for a model, the oldest night first.

    Raises DamagedFreezeError where that is not known of one any more.
    """
    for freeze in _freezes(nights):
        night = freeze.parent.name
        if night < date and (noted := _noted(freeze))["model"] == model:
            yield from (Taken(night, name, *span) for name, spans in noted["bytes"].items() for span in spans)


def read_by(night: Path) -> dict[str, Spans]:
    """Which bytes of each journal file a night has read, its own and those it read again; none where its freeze is
    gone.

    Raises DamagedFreezeError where that is not known any more.
    """
    freeze = night / "freeze_journal"
    if not (freeze / MANIFEST).exists():
        return {}
    noted = _noted(freeze)
    own, again = noted["bytes"], noted["replayed"]
    return {name: [*own.get(name, []), *again.get(name, [])] for name in own.keys() | again.keys()}


def _freezes(nights: Path) -> list[Path]:
    return sorted(manifest.parent for manifest in nights.glob(f"????-??-??/freeze_journal/{MANIFEST}"))


def _noted(freeze: Path) -> dict[str, Any]:
    file = freeze / TAKEN
    noted = json.loads(file.read_text()) if is_whole(file) else {}
    if not noted.keys() >= {"model", "bytes", "replayed"}:  # an earlier version's has not all of them
        raise DamagedFreezeError(
            f"{file}: it was damaged: what that night took of the journal is not known; restore the file, or remove "
            f"{freeze}, and what it has learnt of the journal is learnt once more"
        )
    return noted
