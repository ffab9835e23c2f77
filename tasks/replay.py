"""Replay: lessons of earlier nights that are learnt again, because the model that serves by day does not have them."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.journal import Correction, Entry, Preference, parse_line
from conf.journal_file import latest_day, whole_lines
from tasks.lineage import taught_by
from tasks.taken import Taken, taken_before


@dataclass(frozen=True)
class Replayed:
    """A line of the journal, the night that took it, its place, and whether the champion has it as a lesson."""

    night: str
    place: str
    entry: Entry
    learnt: bool


def replayed(journal: Path, nights: Path, date: str, model: str, champion: str) -> Iterator[Replayed]:
    """The lines of nights before a date that its night reads again.

    A lesson comes until it is in the champion, because a night that made it, or what it was made from, taught it
    (`tasks/lineage.py`); what that night held out for its reward model it did not teach. Picks and corrections come for
    good, then as `learnt`: a reward model is fitted to all of them. So a promotion ends the replay, and a rollback
    begins it again. Reads the journal's own bytes; what its owner has removed from it meanwhile is not learnt again.
    """
    line = taught_by(champion, nights, date)
    for part in taken_before(nights, date, model):
        for place, entry in _entries(journal, part):
            known = any(night.has(entry, part.night) for night in line)
            if isinstance(entry, Preference | Correction) or not known:
                yield Replayed(part.night, place, entry, known)


def last_day(file: Path, night: str) -> datetime.date:
    """The day that lines which a night takes can be of at the latest: a night lasts until the next day."""
    return latest_day(file, datetime.date.fromisoformat(night) + datetime.timedelta(days=1))


def _entries(journal: Path, part: Taken) -> Iterator[tuple[str, Any]]:
    file = journal / part.file
    content = file.read_bytes()[: part.end] if file.exists() else b""
    for number, line in whole_lines(content, part.start)[0]:
        try:
            yield f"{part.file}:{number}", parse_line(line, last_day(file, part.night))
        except ValueError:  # it is in that night's quarantine
            continue
