"""The classroom's lessons, as the journal records them."""

import datetime
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conf.storage.journal import HELD_OUT, LESSON, LIVE, Entry
from conf.storage.journal_file import Written
from models.hf.checkpoint import learned
from models.lessons.preference_data import is_held_out
from tasks.journal.read import Line, read_lines

MOST = 200  # maximum number of lessons in a day copy; if there are more, it learns the latest ones


@dataclass(frozen=True)
class Lesson:
    """What the owner taught with one click.

    `written`: the lesson's lines in the journal. `live`: whether to learn it at once as well as at night.
    `names`: the names under which a checkpoint lists the lesson once it is learned.
    """

    name: str
    entries: tuple[Entry, ...]
    written: Written
    live: bool
    names: frozenset[str] = frozenset()

    def key(self, name: str) -> Any:
        """Return the first entry's value for a key that the journal's format does not define; None if it is absent."""
        return (self.entries[0].model_extra or {}).get(name)


def why_only_tonight(lesson: Lesson, unseen_share: float) -> str:
    """Return why the day copy does not learn a lesson, or an empty string if it does.

    `unseen_share`: the share of conversations that are held out for evaluation and never trained on.
    """
    if not lesson.live:
        return "only tonight"
    messages = [message.model_dump() for message in getattr(lesson.entries[0], "messages", ())]
    judges = lesson.key(HELD_OUT)
    if unseen_share and messages and (is_held_out(messages, unseen_share) if judges is None else judges):
        return "kept to judge: a part of your questions is never learned, so that they can tell whether it helps"
    return ""


def count_lessons(journal: Path) -> int:
    """Return the number of lessons that the classroom has written to the journal."""
    lines = (line for line in read_lines(journal, str(datetime.date.today())) if isinstance(line, Line))
    return len({name for line in lines if (name := (line.entry.model_extra or {}).get(LESSON)) is not None})


def lessons_without(champion: Path, journal: Path) -> list[Lesson]:
    """Return the latest classroom lessons that a champion has not learned, in the order in which they were taught."""
    found: dict[str, Lesson] = {}
    known, today = learned(champion), datetime.date.today()
    for line in read_lines(journal, str(today)):
        if not isinstance(line, Line) or (name := (line.entry.model_extra or {}).get(LESSON)) is None:
            continue
        if known.issuperset(names := line.rows):
            continue
        live = bool((line.entry.model_extra or {}).get(LIVE))
        lesson = Lesson(str(name), (line.entry,), Written(line.file, line.number), live, frozenset(names))
        if (before := found.get(lesson.name)) is not None:
            count = line.number - before.written.line + 1
            lesson = replace(
                before,
                entries=(*before.entries, line.entry),
                written=replace(before.written, count=count),
                names=before.names | lesson.names,
            )
        found[lesson.name] = lesson
    return list(found.values())[-MOST:]
