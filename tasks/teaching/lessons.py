"""Lessons as lines of the journal: which of them a day copy is made of, and which a night has taken."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conf.storage.journal import Entry, parse_line
from conf.storage.journal_file import Written
from models.lessons.preference_data import is_held_out
from tasks.journal.lineage import taught_by
from tasks.journal.spans import Taken, consumed, is_in, taken_before
from tasks.teaching.keys import LESSON, LIVE

MOST = 200  # lessons that a day copy is made of, the latest ones
END = "9999-12-31"


@dataclass(frozen=True)
class Lesson:
    """What an owner taught with one click.

    `written`: its lines in the journal. `live`: whether the day copy learns it. `night`: the date of the night that
    took it, if one has.
    """

    name: str
    entries: tuple[Entry, ...]
    written: Written
    live: bool
    night: str | None = None

    def key(self, name: str) -> Any:
        """Return what the lesson's first line says under a key beside those of the format; None if it does not."""
        return (self.entries[0].model_extra or {}).get(name)

    @property
    def sources(self) -> list[str]:
        """Where its lines are, as the night's tables say it: `2026-11-22.jsonl:3`."""
        first = self.written.line
        return [f"{self.written.file.name}:{first + number}" for number in range(len(self.entries))]


def why_only_tonight(lesson: Lesson, unseen_share: float) -> str:
    """Return why a lesson is not learnt by day, a sentence; empty if it is.

    `unseen_share`: the share of conversations that judge, and are never learnt.
    """
    if not lesson.live:
        return "only tonight"
    messages = [message.model_dump() for message in getattr(lesson.entries[0], "messages", ())]
    if messages and is_held_out(messages, unseen_share):
        return "kept to judge: a part of your questions is never learnt, so that they can tell whether it helps"
    return ""


def lessons_without(champion: Path, journal: Path, nights: Path, model: str) -> list[Lesson]:
    """Return the classroom's lessons that a champion has not learnt, in the order in which they were given.

    These are those that no night has taken, and those of nights of this model that the champion does not descend from.
    """
    taken, own, lineage = consumed(nights), list(taken_before(nights, END, model)), taught_by(champion.name, nights)
    found: dict[str, Lesson] = {}
    for lesson in _written(journal):
        part = _part(lesson.written, own)
        if part is not None:
            here = Taken(part.night, part.file, lesson.written.start, lesson.written.end)
            if any(night.has(lesson.entries[0], here) for night in lineage):
                continue
        elif is_in(lesson.written, taken.get(lesson.written.file.name, ())):
            continue
        lesson = replace(lesson, night=part.night if part else None)
        if (before := found.get(lesson.name)) is not None:
            whole = Written(lesson.written.file, before.written.start, lesson.written.end)
            lesson = replace(before, entries=(*before.entries, *lesson.entries), written=whole)
        found[lesson.name] = lesson
    return list(found.values())[-MOST:]


def _written(journal: Path) -> Iterator[Lesson]:
    """Yield a lesson for each line of the classroom."""
    for file in sorted(journal.glob("*.jsonl")):
        end = 0
        for line in file.read_bytes().splitlines(keepends=True):
            start, end = end, end + len(line)
            if f'"{LESSON}"'.encode() not in line:
                continue
            try:
                entry = parse_line(line)
            except ValueError:  # the night's quarantine names it
                continue
            extra = entry.model_extra or {}
            if LESSON in extra:
                yield Lesson(str(extra[LESSON]), (entry,), Written(file, start, end), bool(extra.get(LIVE)))


def _part(written: Written, parts: list[Taken]) -> Taken | None:
    return next((p for p in parts if p.file == written.file.name and is_in(written, [(p.start, p.end)])), None)
