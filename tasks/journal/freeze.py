"""Freeze the journal: turn its lines into tables of lessons, and quarantine bad lines with a reason."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conf.sections.lessons import DayConfig
from conf.storage.journal import Entry, lesson_digest, parse_line
from models.hf.checkpoint import learned, parent_of
from rewards.data.synthetic_journal import Lessons, generated_lines
from tasks.journal.held_out import conversations_held_out, is_judge, opening_of
from tasks.journal.read import TABLES, read_lines, table_row, valid_lines
from tasks.journal.tables import CORRECTIONS, FEEDBACK, GENERATED, PREFERENCES, QUARANTINE, TRACES, WORDS
from tasks.stage import Artifact, stage
from tasks.tables import read_table, write_table

LESSONS = {
    "preferences": PREFERENCES,
    "corrections": CORRECTIONS,
    "feedback": FEEDBACK,
    "words": WORDS,
    "traces": TRACES,
}
# An entry, its table rows by lesson name, its source, and whether it is held out for judging and so never taught.
Taught = tuple[Entry, Mapping[str, dict[str, Any]], str, bool]


@stage(resources=("journal",))
def freeze_journal(
    folder: Path,
    *,
    day: DayConfig,
    levels: tuple[str, ...] | None,
    joined_levels: tuple[str, ...] = (),
    seed: str,
    date: str,
    start: Path,
    unseen_share: float,
    journal: Path,
) -> None:
    """Write the lesson tables: all lessons of the journal, and those of the generated day that the student needs.

    Each row has its lesson's name, so that training can skip lessons that the student has learned. An untrained student
    gets the whole generated (synthetic) day. A trained student gets only that day's picks, which test the reward model,
    and worked solutions of `joined_levels`: repeating the rest would undo the rounds since. The journal is not changed.

    `start`: the checkpoint that the night begins with. `unseen_share`: the share of conversations held out for judging.
    Writes `counts.json`: how many of each table's lessons are `new` to `start`, already `learned`, or `generated`.
    """
    known, untouched = learned(start), parent_of(start) is None
    lines, quarantine = read_lines(journal, date)
    held_out = conversations_held_out(lines, known, unseen_share)
    taught: list[Taught] = [(line.entry, line.rows, line.source, opening_of(line.entry) in held_out) for line in lines]
    kinds = ("preferences", "traces", "corrections", "feedback", "words") if untouched else ("preferences",)
    generated = [*_generated(day, kinds, levels, seed, date)]
    if joined_levels and not untouched:
        generated += _generated(day, ("traces",), joined_levels, f"{seed} {date}", date)  # others than last night's
    for number, entry in enumerate(generated):
        name = f"{GENERATED}-{number}-{lesson_digest(entry)}"
        judges = name not in known and is_judge(entry, unseen_share)
        taught.append((entry, {name: table_row(entry)}, GENERATED, judges))
    rows, counts = _tables(taught, known)
    for name, schema in LESSONS.items():
        write_table(folder / f"{name}.parquet", schema, rows[name])
    write_table(folder / "quarantine.parquet", QUARANTINE, quarantine)
    (folder / "counts.json").write_text(json.dumps({**counts, "quarantined": len(quarantine)}))


def frozen_lessons(frozen: Artifact) -> set[str]:
    """Return the names of all lessons in a frozen journal."""
    tables = (read_table(frozen.folder / f"{name}.parquet", schema) for name, schema in LESSONS.items())
    return {lesson for table in tables for lesson in table.lesson}


def waiting(journal: Path, date: str, student: Path | None, unseen_share: float) -> Counter[str]:
    """Return, by kind, how many journal lines the night of `date` may teach that the student has not learned."""
    known = learned(student) if student else frozenset[str]()
    lines = valid_lines(journal, date)
    held_out = conversations_held_out(lines, known, unseen_share)
    taught = (line for line in lines if opening_of(line.entry) not in held_out)
    return Counter(line.entry.kind for line in taught if not line.rows.keys() <= known)


def _tables(
    taught: Iterable[Taught], known: frozenset[str]
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Counter[str]]]:
    """Return the rows and counts of each lesson table. Rated conversations go into the feedback table."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in LESSONS}
    counts = {name: Counter(new=0, learned=0, generated=0) for name in LESSONS}
    for entry, lessons, source, held_out in taught:
        table = TABLES.get(entry.kind, "feedback")
        origin: dict[str, Any] = {"source": source, "day": str(entry.day)}
        if "held_out" in LESSONS[table].names:
            origin["held_out"] = held_out
        for lesson, row in lessons.items():
            counts[table]["learned" if lesson in known else GENERATED if source == GENERATED else "new"] += 1
            rows[table].append(row | origin | {"lesson": lesson})
    return rows, counts


def _generated(
    day: DayConfig, kinds: Sequence[Lessons], levels: tuple[str, ...] | None, seed: str, date: str
) -> Iterator[Entry]:
    """Yield the entries of these kinds from the generated day."""
    for kind in kinds:
        for line in generated_lines(kind, seed, getattr(day, f"generated_{kind}"), levels, date):
            yield parse_line(json.dumps(line).encode())
