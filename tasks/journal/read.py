"""The journal's lessons, identified by content: what a checkpoint has learned is a set of lesson names.

A lesson's name is the digest of what it teaches (`conf.storage.journal.lesson_digest`). If the same content is taught
again, a number is appended (`-2` for the second time). An edited line is therefore a new lesson, a removed line is not
taught again, and a line's file and position do not matter. A rated conversation contains one lesson per rated turn, and
a long text contains one lesson per piece.
"""

import datetime
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.home import Home, InputError
from conf.storage.journal import UNFINISHED as CUT
from conf.storage.journal import Conversation, Correction, Entry, Feedback, Preference, Words, lesson_digest
from conf.storage.journal_file import UNFINISHED, read_file
from models.hf.checkpoint import learned
from rewards.data.synthetic_journal import KINDS

TABLES = {kind: table for table, kind in KINDS.items()}
PIECE = 2000  # maximum number of characters of a text in one lesson


@dataclass(frozen=True)
class Line:
    """A valid line of the journal: its file, its number, and its entry.

    `rows`: the line's rows for the lesson tables, keyed by lesson name, without the columns that the freeze adds.
    """

    file: Path
    number: int
    entry: Entry
    rows: dict[str, dict[str, Any]]

    @property
    def source(self) -> str:
        """The line's file name and number, e.g. `2026-11-22.jsonl:3`."""
        return f"{self.file.name}:{self.number}"


def read_lines(journal: Path, date: str) -> tuple[list[Line], list[dict[str, Any]]]:
    """Return the lines that the night of `date` may use, and a row of the quarantine for each refused line.

    The night ends on the day after `date`, so lines of that day count. A last line still being written is left out.
    Line 0 of the quarantine stands for a whole file.
    """
    until = datetime.date.fromisoformat(date) + datetime.timedelta(days=1)
    lines, refused, said = list[Line](), list[dict[str, Any]](), Counter[str]()
    for file in sorted(journal.glob("*.jsonl")):
        try:
            good, bad = read_file(file, until)
        except InputError as error:
            refused.append({"file": file.name, "line": 0, "reason": str(error).removeprefix(f"{file}: ")})
            continue
        for number, entry in good:
            rows: dict[str, dict[str, Any]] = {}
            for part in _parts(entry):
                said[content := lesson_digest(part)] += 1
                rows[content if said[content] == 1 else f"{content}-{said[content]}"] = table_row(part)
            lines.append(Line(file, number, entry, rows))
        refused += [{"file": file.name, **each} for each in bad if each["reason"] != UNFINISHED]
    return lines, refused


def valid_lines(journal: Path, date: str | None = None) -> list[Line]:
    """Return the journal's valid lines that the night of `date` (default: today) may use."""
    return read_lines(journal, date or str(datetime.date.today()))[0]


def lessons_in(journal: Path, date: str) -> set[str]:
    """Return the names of all lessons in the journal that the night of `date` may use."""
    return {name for line in valid_lines(journal, date) for name in line.rows}


def learned_by(home: Home, file: Path, number: int) -> int:
    """Return how many checkpoints in the home have learned from the journal line with this file and number."""
    lines = valid_lines(home.journal)
    names = next((line.rows.keys() for line in lines if (line.file, line.number) == (file, number)), set[str]())
    return sum(not learned(checkpoint).isdisjoint(names) for checkpoint in home.checkpoints.glob("*"))


def table_row(entry: Entry) -> dict[str, Any]:
    """Return an entry as a row of its kind's table (`TABLES`), with lists as JSON and without the origin columns."""
    known = type(entry).model_fields.keys() - {"version", "kind", "at", "imported_from"}
    fields = entry.model_dump(include={*known})
    if isinstance(entry, Preference | Correction | Feedback) and (cut := entry.extra(CUT)):
        fields["unfinished"] = [*cut]
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in fields.items()}


def _parts(entry: Entry) -> list[Any]:
    match entry:
        case Conversation():
            return entry.ratings
        case Words():
            return [entry.model_copy(update={"text": text}) for text in pieces(entry.text)]
        case _:
            return [entry]


def pieces(text: str) -> list[str]:
    """Split a text into pieces of at most `PIECE` characters: whole paragraphs if they fit, else whole words."""
    found: list[str] = []
    for paragraph in text.split("\n\n"):
        while len(paragraph) > PIECE:
            cut = max(paragraph.rfind(" ", 1, PIECE), paragraph.rfind("\n", 1, PIECE))
            cut = cut if cut > 0 else PIECE
            found.append(paragraph[:cut])
            paragraph = paragraph[cut:].lstrip()
        if found and len(found[-1]) + len(paragraph) + 2 <= PIECE:
            found[-1] += f"\n\n{paragraph}"
        else:
            found.append(paragraph)
    return [piece for piece in found if piece.strip()]
