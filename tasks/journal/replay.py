"""Replay: lessons of earlier nights that are learnt again, because the model that serves by day does not have them."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.journal import Correction, Entry, Preference, parse_line
from conf.storage.journal_file import latest_day, whole_lines
from tasks.journal.lineage import Taught
from tasks.journal.spans import Taken


@dataclass(frozen=True)
class Replayed:
    """A line of the journal, the night that took it, its place, and whether the champion has it as a lesson."""

    night: str
    place: str
    entry: Entry
    learnt: bool


def replayed(journal: Path, parts: Iterable[Taken], line: Sequence[Taught]) -> Iterator[Replayed]:
    """The lines of the parts that earlier nights took which a night reads again. `line`: the champion's.

    A lesson comes until it is in the champion, because a night that made it, or what it was made from, taught it
    (`tasks/journal/lineage.py`); what that night held out for its reward model it did not teach. Picks and corrections
    come for good, then as `learnt`: a reward model is fitted to all of them. So a promotion ends the replay, and a
    rollback begins it again. Reads the journal's own bytes; what its owner has removed from it meanwhile is not learnt
    again.
    """
    for part in parts:
        for place, entry in _entries(journal, part):
            if (known := learnt(entry, part, line)) is not None:
                yield Replayed(part.night, place, entry, known)


def learnt(entry: Entry, part: Taken, line: Sequence[Taught]) -> bool | None:
    """Whether the champion's `line` has a line of the journal as a lesson; None: it has, and there is no more to it."""
    known = any(night.has(entry, part) for night in line)
    return known if isinstance(entry, Preference | Correction) or not known else None


def last_day(file: Path, night: str) -> datetime.date:
    """The day that lines which a night takes can be of at the latest: a night lasts until the next day."""
    return latest_day(file, datetime.date.fromisoformat(night) + datetime.timedelta(days=1))


def _entries(journal: Path, part: Taken) -> Iterator[tuple[str, Any]]:
    file = journal / part.file
    try:
        content = file.read_bytes()[: part.end]
    except OSError:  # its owner has removed it, or the freeze says that it cannot be read
        return
    for number, line in whole_lines(content, part.start, ended=True)[0]:
        try:
            yield f"{part.file}:{number}", parse_line(line, last_day(file, part.night))
        except ValueError:  # it is in that night's quarantine
            continue
