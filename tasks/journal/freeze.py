"""Freeze the journal: its lines become tables of lessons, and bad lines go to a quarantine with a reason."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conf.sections.lessons import DayConfig
from conf.storage.journal import HELD_OUT, Entry, Trace, Words, lesson_of, parse_line
from models.hf.checkpoint import learned, parent_of
from models.lessons.preference_data import is_held_out, opening
from rewards.data.synthetic_journal import Lessons, generated_lines
from tasks.journal.read import TABLES, Line, Refused, read_lines, table_row
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
# An entry with its rows by lesson, its source, and whether it judges and is never taught.
Taught = tuple[Entry, Mapping[str, dict[str, Any]], str, bool]


@stage(resources=("journal",))
def freeze_journal(
    folder: Path,
    *,
    day: DayConfig,
    levels: tuple[str, ...] | None,
    new_levels: tuple[str, ...] = (),
    seed: str,
    date: str,
    start: Path,
    unseen_share: float,
    journal: Path,
) -> None:
    """Write every lesson of the journal into its table, learned or not, and those of the generated day if any.

    Each row has its lesson's name, which the student's lessons compare with what it has learned. The untouched student
    gets the whole generated day. A trained one has had those lessons, and more of them would undo its rounds: it gets
    the picks, which judge the reward model, and worked solutions of `new_levels` alone. The journal is never changed.

    `start`: what the night begins with. `unseen_share`: the share of conversations that are held out, to judge.
    counts.json: for each table how many lessons the start has not learned (`new`), has `learned`, or are `generated`.
    """
    read, known, untouched = [*read_lines(journal, date)], learned(start), parent_of(start) is None
    lines = [line for line in read if isinstance(line, Line)]
    held_out = conversations_held_out(lines, known, unseen_share)
    taught: list[Taught] = [(line.entry, line.rows, line.source, opening_of(line.entry) in held_out) for line in lines]
    kinds = ("preferences", "traces", "corrections", "feedback", "words") if untouched else ("preferences",)
    generated = [*_generated(day, kinds, levels, seed, date)]
    if new_levels and not untouched:
        generated += _generated(day, ("traces",), new_levels, seed, date)
    for number, entry in enumerate(generated):
        name = f"{GENERATED}-{number}-{lesson_of(entry)}"
        judges = name not in known and is_judge(entry, unseen_share)
        taught.append((entry, {name: table_row(entry)}, GENERATED, judges))
    rows, counts = _tables(taught, known)
    for name, schema in LESSONS.items():
        write_table(folder / f"{name}.parquet", schema, rows[name])
    quarantine = [asdict(line) for line in read if isinstance(line, Refused)]
    write_table(folder / "quarantine.parquet", QUARANTINE, quarantine)
    (folder / "counts.json").write_text(json.dumps({**counts, "quarantined": len(quarantine)}))


def read_counts(frozen: Artifact) -> dict[str, int]:
    """Return how many lessons each table of a frozen day has for the night to teach."""
    counts: dict[str, Any] = frozen.read_json("counts.json")
    tables = {name: own for name, own in counts.items() if isinstance(own, dict)}
    return {name: own["new"] + own["generated"] for name, own in tables.items()}


def frozen_lessons(frozen: Artifact) -> set[str]:
    """Return the names of all lessons in a frozen day."""
    tables = (read_table(frozen.folder / f"{name}.parquet", schema) for name, schema in LESSONS.items())
    return {lesson for table in tables for lesson in table.lesson}


def conversations_held_out(lines: Iterable[Line], known: frozenset[str], share: float) -> set[str]:
    """Return the openings of the conversations that are never taught, so that they can judge.

    The classroom writes into a line whether its conversation is; of others a hash decides (`is_held_out`). None is of
    which the student has learned a part, and none at all where the `share` is 0. Worked solutions do not count.
    """
    if not share:
        return set()
    said: dict[str, bool] = {}
    for line in lines:
        if (start := opening_of(line.entry)) is None or isinstance(line.entry, Trace):
            continue
        chosen = (line.entry.model_extra or {}).get(HELD_OUT)
        if not known.isdisjoint(line.rows):
            said[start] = False
        elif start not in said:
            said[start] = is_judge(line.entry, share) if chosen is None else bool(chosen)
    return {start for start, held_out in said.items() if held_out}


def is_judge(entry: Entry, share: float) -> bool:
    """Return whether a hash of an entry's conversation chooses it as one that is never taught."""
    return not isinstance(entry, Words | Trace) and is_held_out(_messages(entry), share)


def opening_of(entry: Entry) -> str | None:
    """Return how an entry's conversation opens; None for a text."""
    return None if isinstance(entry, Words) else opening(_messages(entry))


def _messages(entry: Any) -> list[dict[str, Any]]:
    return [message.model_dump() for message in entry.messages]


def _tables(
    taught: Iterable[Taught], known: frozenset[str]
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Counter[str]]]:
    """Return the rows of each lesson table, and its counts; a conversation's rows are feedback."""
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
    """Yield the generated day's lines of these kinds."""
    for kind in kinds:
        for line in generated_lines(kind, seed, getattr(day, f"generated_{kind}"), levels, date):
            yield parse_line(json.dumps(line).encode())
