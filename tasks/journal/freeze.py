"""Freeze the journal: its lines become tables of lessons, and bad lines go to a quarantine with a reason."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conf.sections.lessons import DayConfig
from conf.storage.journal import Entry, Trace, Words, lesson_of, parse_line
from models.hf.checkpoint import learned, parent_of
from models.lessons.preference_data import is_held_out, opening
from rewards.data.synthetic_journal import Lessons, generated_lines
from tasks.journal.read import TABLES, Line, read_lines, table_row
from tasks.journal.tables import CORRECTIONS, FEEDBACK, GENERATED, PREFERENCES, QUARANTINE, TRACES, WORDS
from tasks.stage import Artifact, stage
from tasks.tables import read_table, write_table
from tasks.teaching.keys import HELD_OUT

LESSONS = {
    "preferences": PREFERENCES,
    "corrections": CORRECTIONS,
    "feedback": FEEDBACK,
    "words": WORDS,
    "traces": TRACES,
}


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
    lines, quarantine = list[Line](), list[dict[str, Any]]()
    for line in read_lines(journal, date):
        if isinstance(line, Line):
            lines.append(line)
        else:
            quarantine.append(asdict(line))
    tables = _Tables(learned(start))
    held_out = conversations_held_out(lines, tables.known, unseen_share)
    for line in lines:
        tables.add(line.entry, line.rows, line.source, opening_of(line.entry) in held_out)
    kinds = (
        ("preferences", "traces", "corrections", "feedback", "words") if parent_of(start) is None else ("preferences",)
    )
    generated = list(_generated(day, levels, seed, date, *kinds))
    if parent_of(start) is not None and new_levels:
        generated += _generated(day, new_levels, seed, date, "traces")
    for number, entry in enumerate(generated):
        name = f"{GENERATED}-{number}-{lesson_of(entry)}"
        judges = name not in tables.known and is_judge(entry, unseen_share)
        tables.add(entry, {name: table_row(entry)}, GENERATED, judges)
    for name, schema in LESSONS.items():
        write_table(folder / f"{name}.parquet", schema, tables.rows[name])
    write_table(folder / "quarantine.parquet", QUARANTINE, quarantine)
    (folder / "counts.json").write_text(json.dumps({**tables.counts, "quarantined": len(quarantine)}))


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


@dataclass
class _Tables:
    """The rows of the lesson tables, and the counts. `known`: the lessons that the student has learned."""

    known: frozenset[str]
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter(new=0, learned=0, generated=0) for name in LESSONS}
    )

    def add(self, entry: Entry, rows: dict[str, dict[str, Any]], source: str, held_out: bool) -> None:
        """Add an entry's rows; a conversation's are feedback."""
        table = TABLES.get(entry.kind, "feedback")
        origin = {"source": source, "day": str(entry.day)} | (
            {"held_out": held_out} if "held_out" in LESSONS[table].names else {}
        )
        for lesson, row in rows.items():
            is_known = lesson in self.known
            self.counts[table]["learned" if is_known else GENERATED if source == GENERATED else "new"] += 1
            self.rows[table].append(row | origin | {"lesson": lesson})


def _generated(
    day: DayConfig, levels: tuple[str, ...] | None, seed: str, date: str, *kinds: Lessons
) -> Iterator[Entry]:
    """Yield the generated day's lines of these kinds."""
    for kind in kinds:
        for line in generated_lines(kind, seed, getattr(day, f"generated_{kind}"), levels, date):
            yield parse_line(json.dumps(line).encode())
