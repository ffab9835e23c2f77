"""The parts of the journal that the nights' freezes have taken, as byte offsets in its files."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.home import NightError
from conf.storage.journal_file import Written
from tasks.stage import MANIFEST, is_whole

# The model that learnt, and of each journal file the spans that the night took (`bytes`) and read again (`replayed`).
TAKEN = "taken.json"

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Taken:
    """A part of a journal file, from one byte offset to another, and the night that took it."""

    night: str
    file: str
    start: int
    end: int


def note_taken(folder: Path, model: str, taken: Mapping[str, Spans], replayed: Iterable[Taken]) -> None:
    """Write what a night's freeze has taken into its folder."""
    again: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for part in replayed:
        again[part.file].append((part.start, part.end))
    (folder / TAKEN).write_text(json.dumps({"model": model, "bytes": taken, "replayed": again}))


def consumed(nights: Path, date: str = "????-??-??") -> dict[str, Spans]:
    """Return the spans of each journal file that the committed freezes of all nights, or of one, have taken.

    Raises NightError if a record is damaged, because a lesson would be learnt twice, or never.
    """
    taken: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for freeze in _freezes(nights, date):
        for name, spans in _noted(freeze)["bytes"].items():
            taken[name] += [(start, end) for start, end in spans]
    return {name: sorted(spans) for name, spans in taken.items()}


def free(taken: Spans) -> Iterator[tuple[int, int | None]]:
    """Yield the spans of a file that were not taken; the last one extends to the file's end (None)."""
    start = 0
    for begin, end in taken:
        if begin > start:
            yield start, begin
        start = max(start, end)
    yield start, None


def taken_before(nights: Path, date: str, model: str) -> Iterator[Taken]:
    """Yield the parts that the nights before a date took for a model, the oldest night first.

    Raises NightError if a record is damaged.
    """
    for freeze in _freezes(nights):
        night = freeze.parent.name
        if night < date and (noted := _noted(freeze))["model"] == model:
            yield from (Taken(night, name, *span) for name, spans in noted["bytes"].items() for span in spans)


def night_of(written: Written, nights: Path) -> str | None:
    """Return the date of the night that took lines of the journal; None if none has."""
    for night in sorted(nights.glob("????-??-??")):
        for name, spans in consumed(nights, night.name).items():
            if name == written.file.name and is_in(written, spans):
                return night.name
    return None


def is_in(written: Written, spans: Spans) -> bool:
    """Return whether lines of a journal file are in one of its spans."""
    return any(start <= written.start and written.end <= end for start, end in spans)


def read_by(night: Path) -> dict[str, Spans]:
    """Return the spans of each journal file that a night has taken or read again; none if its freeze is gone.

    Raises NightError if its record is damaged.
    """
    freeze = night / "freeze_journal"
    if not (freeze / MANIFEST).exists():
        return {}
    noted = _noted(freeze)
    taken, again = noted["bytes"], noted["replayed"]
    return {name: [*taken.get(name, []), *again.get(name, [])] for name in taken.keys() | again.keys()}


def _freezes(nights: Path, date: str = "????-??-??") -> list[Path]:
    return sorted(manifest.parent for manifest in nights.glob(f"{date}/freeze_journal/{MANIFEST}"))


def _noted(freeze: Path) -> dict[str, Any]:
    file = freeze / TAKEN
    if not is_whole(file):
        raise NightError(
            f"{file}: damaged, so what that night took of the journal is unknown; restore the file, or remove "
            f"{freeze}, and the next night learns that part of the journal again"
        )
    return json.loads(file.read_text())
