"""Replay: lessons of earlier nights are learnt again as long as the champion does not have them."""

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
    """A line of the journal, the night that took it, its source (file:line), and whether the champion has learnt it."""

    night: str
    source: str
    entry: Entry
    learnt: bool


def replayed(journal: Path, parts: Iterable[Taken], line: Sequence[Taught]) -> Iterator[Replayed]:
    """Yield the lines of earlier nights' parts that a night reads again. `line`: what the champion's lineage taught.

    A lesson comes back until a night of the champion's lineage has taught it (`tasks/journal/lineage.py`); what that
    night held out for its reward model was not taught. Picks and corrections always come back, then as `learnt`: a
    reward model is fitted to all of them. So a promotion ends the replay, and a rollback starts it again. Reads the
    journal itself: what the owner has removed from it is not learnt again.
    """
    for part in parts:
        for source, entry in _entries(journal, part):
            if (known := learnt(entry, part, line)) is not None:
                yield Replayed(part.night, source, entry, known)


def learnt(entry: Entry, part: Taken, line: Sequence[Taught]) -> bool | None:
    """Return whether the champion's lineage has taught an entry; None: it has, and the entry is no longer needed."""
    known = any(night.has(entry, part) for night in line)
    return known if isinstance(entry, Preference | Correction) or not known else None


def last_day(file: Path, night: str) -> datetime.date:
    """Return the latest date that lines taken by a night may have: a night lasts until the next day."""
    return latest_day(file, datetime.date.fromisoformat(night) + datetime.timedelta(days=1))


def _entries(journal: Path, part: Taken) -> Iterator[tuple[str, Any]]:
    file = journal / part.file
    try:
        content = file.read_bytes()[: part.end]
    except OSError:  # removed by the owner, or unreadable, which the freeze reports
        return
    for number, line in whole_lines(content, part.start, ended=True)[0]:
        try:
            yield f"{part.file}:{number}", parse_line(line, last_day(file, part.night))
        except ValueError:  # in that night's quarantine
            continue
