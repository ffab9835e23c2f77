"""Replay: lessons of earlier nights that are learnt again, because the model that serves by day does not have them."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conf.journal import Entry, Preference, parse_line
from conf.journal_file import latest_day, whole_lines
from tasks.stage import committed
from tasks.taken import Taken, taken_before


def replayed(journal: Path, nights: Path, date: str, model: str, champion: str) -> Iterator[tuple[str, str, Entry]]:
    """The lessons of nights before a date that its night learns again: the night that took each, its place, itself.

    Picks always come along: they judge answers, and a reward model is fitted to all of them. Everything else comes
    until it is in the champion: the night that made the champion, and those before it, have taught it theirs. So a
    promotion ends the replay, and a rollback begins it again. Reads the journal's own bytes; what its owner has
    removed from it meanwhile is not learnt again.
    """
    learnt = night_that_made(champion, nights, date)
    for part in taken_before(nights, date, model):
        for place, entry in _entries(journal, part):
            if isinstance(entry, Preference) or part.night > learnt:
                yield part.night, place, entry


def night_that_made(champion: str, nights: Path, date: str) -> str:
    """The date of the last night before another that made this checkpoint (its digest) of an older one.

    Empty where none of this home did: it is the student as it came.
    """
    made = ""
    for night, sat in examined(nights, date):
        if champion != sat["champion"] and champion in sat.values():
            made = night
    return made


def examined(nights: Path, date: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The nights before a date that came to a decision, the oldest first, each with the digests of those who sat."""
    for folder in sorted(nights.glob("????-??-??/decide")):
        if folder.parent.name < date and (decision := committed(folder)):
            found = decision.read_json("decision.json")
            target, compared = found["target"], found["comparisons"]
            sat = {who: part[target]["after_digest"] for who, part in compared.items()}
            yield folder.parent.name, sat | {"champion": compared["candidate"][target]["before_digest"]}


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
