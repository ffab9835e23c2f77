"""The classroom's lessons, as the journal records them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.journal import HELD_OUT, LESSON, LIVE, Entry
from conf.storage.journal_file import Written
from models.hf.checkpoint import learned
from models.lessons.preference_data import is_held_out
from tasks.journal.read import Line, valid_lines

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
        return self.entries[0].extra(name)


def why_only_tonight(lesson: Lesson, unseen_share: float) -> str:
    """Return why the day copy does not learn a lesson, or an empty string if it does.

    `unseen_share`: the share of conversations that are held out for evaluation and never trained on.
    """
    if not lesson.live:
        return "it is learned tonight, because “Learn now” is off"
    messages, judges = lesson.entries[0].turns, lesson.key(HELD_OUT)
    if unseen_share and messages and (is_held_out(messages, unseen_share) if judges is None else judges):
        return "this question is held out: some are never learned, so that they can tell whether teaching helps"
    return ""


def lessons_without(champion: Path, journal: Path) -> list[Lesson]:
    """Return the latest classroom lessons that a champion has not learned, in the order in which they were taught."""
    known, found = learned(champion), defaultdict[str, list[Line]](list)
    for line in valid_lines(journal):
        name = line.entry.extra(LESSON)
        if name is not None and not known.issuperset(line.rows):
            found[str(name)].append(line)
    return [_lesson(name, lines) for name, lines in found.items()][-MOST:]


def _lesson(name: str, lines: Sequence[Line]) -> Lesson:
    first, last = lines[0], lines[-1]
    return Lesson(
        name,
        entries=tuple(line.entry for line in lines),
        written=Written(first.file, first.number, last.number - first.number + 1),
        live=bool(first.entry.extra(LIVE)),
        names=frozenset(name for line in lines for name in line.rows),
    )
