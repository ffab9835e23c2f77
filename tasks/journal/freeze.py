"""Freeze the journal: its new lines become tables, and bad lines go to a quarantine with a reason."""

import datetime
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conf.sections.lessons import DayConfig
from conf.storage.durable import sync
from conf.storage.journal import IMPORTED, Conversation, Entry, lesson_of, parse_line
from conf.storage.journal_file import is_over, whole_lines
from models.checkpoint import parent_of
from rewards.data.synthetic_journal import KINDS, Lessons, generated_lines
from tasks.journal.lineage import examined, taught_by
from tasks.journal.replay import last_day, replayed
from tasks.journal.spans import Spans, consumed, free, note_taken, taken_before
from tasks.stage import Artifact, stage
from tasks.tables import CORRECTIONS, FEEDBACK, GENERATED, PREFERENCES, QUARANTINE, TRACES, WORDS, write_table

LESSONS = {
    "preferences": PREFERENCES,
    "corrections": CORRECTIONS,
    "feedback": FEEDBACK,
    "words": WORDS,
    "traces": TRACES,
}
TABLES = {kind: table for table, kind in KINDS.items()}


@stage(resources=("journal", "nights", "checkpoints"))
def freeze_journal(
    folder: Path,
    *,
    day: DayConfig,
    levels: tuple[str, ...] | None,
    new_levels: tuple[str, ...] = (),
    seed: str,
    date: str,
    model: str,
    champion: Path,
    journal: Path,
    nights: Path,
    checkpoints: Path,
) -> dict[str, float]:
    """Take every complete journal line that no earlier committed freeze has taken, and the generated day if any.

    The untouched student gets the whole generated day. A trained one has had those lessons, and more of them would undo
    its rounds: it gets the picks, which judge the reward model, and worked solutions of `new_levels` alone. Lessons of
    earlier nights that the champion does not have are replayed (see `tasks/journal/replay.py`). The lines taken are
    recorded as byte offsets for each file (`tasks/journal/spans.py`); the journal is never changed.

    counts.json: for each kind the number of new, replayed, generated, and left-out duplicate lines. The figure
    `unknown_policies`: how many new picks name a checkpoint that this home has never had. It depends on what is on the
    disk now, so it is not an output.
    """
    lessons = _Lessons()
    before, parts, line = consumed(nights), list(taken_before(nights, date, model)), taught_by(champion.name, nights)
    for again in replayed(journal, parts, line):
        lessons.add("replayed", again.night, again.source, again.entry, again.learnt)
    taken: dict[str, Spans] = {}
    for file in sorted(journal.glob("*.jsonl")):
        if spans := _take(file, before.get(file.name, ()), date, lessons):
            taken[file.name] = spans
    if parent_of(champion) is None:
        generated = _generated(day, levels, seed, date, "preferences", "traces", "corrections", "feedback", "words")
    else:
        for line in _generated(day, levels, seed, date, "preferences"):
            lessons.add(GENERATED, date, GENERATED, line, learnt=True)
        generated = _generated(day, new_levels, seed, date, "traces") if new_levels else ()
    for line in generated:
        lessons.add(GENERATED, date, GENERATED, line)
    for name, schema in LESSONS.items():
        write_table(folder / f"{name}.parquet", schema, lessons.rows[name])
    write_table(folder / "quarantine.parquet", QUARANTINE, lessons.quarantine)
    counts = {**lessons.counts, "quarantined": len(lessons.quarantine)}
    (folder / "counts.json").write_text(json.dumps(counts))
    note_taken(folder, model, taken, parts)
    return {"unknown_policies": _unknown_policies(lessons.rows["preferences"], date, nights, checkpoints)}


def read_counts(frozen: Artifact) -> dict[str, int]:
    """Return how many lines each table of a frozen day has."""
    counts: dict[str, Any] = frozen.read_json("counts.json")
    taken = {name: own for name, own in counts.items() if isinstance(own, dict)}
    return {name: sum(own[origin] for origin in ("new", "replayed", "generated")) for name, own in taken.items()}


@dataclass
class _Lessons:
    """The rows of the lesson tables, the refused lines, and the counts."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    quarantine: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter(new=0, replayed=0, generated=0, duplicates=0) for name in LESSONS}
    )
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, origin: str, night: str, source: str, entry: Entry, learnt: bool = False) -> None:
        """Add a lesson as a row, unless it is a duplicate; a generated day keeps its repetitions.

        A lesson that the champion has learnt and the owner gives again is a lesson again. A conversation becomes rows
        of feedback, one for each turn of the assistant.
        """
        if isinstance(entry, Conversation):
            for rating in entry.ratings:
                self.add(origin, night, source, rating, learnt)
            return
        table, row = table_row(entry)
        lesson = lesson_of(entry)
        if origin != GENERATED and (known := self.seen.get(lesson)) is not None:
            self.counts[table]["duplicates"] += 1
            if not learnt:
                known.pop("learnt", None)
            return
        row |= {"source": source, "night": night} | ({"learnt": True} if learnt else {})
        self.seen[lesson] = row
        self.counts[table][origin] += 1
        self.rows[table].append(row)

    def refuse(self, file: Path, line: int, reason: str) -> None:
        """Put a line into the quarantine; line 0 is the whole file."""
        self.quarantine.append({"file": file.name, "line": line, "reason": reason})


def _take(file: Path, taken: Spans, date: str, lessons: _Lessons) -> Spans:
    """Add the lines of a file that no night has taken, and return their spans.

    In a file that is complete, the last line needs no line break.
    """
    try:
        sync(file)  # a power cut must not undo what is recorded as taken
        content = file.read_bytes()
    except OSError as error:
        lessons.refuse(
            file, 0, f"cannot be read ({error.strerror}), so none of its lines was taken; check its permissions"
        )
        return []
    if taken and (before := max(end for _, end in taken)) > len(content):
        lessons.refuse(
            file,
            0,
            f"has {len(content)} bytes, but earlier nights took {before}, so no line was taken; rename it, and all of "
            "it is taken again",
        )
        return []
    over, spans = is_over(file, datetime.date.fromisoformat(date)), []
    for start, until in free(taken):
        lines, end = whole_lines(content[:until], start, ended=over or until is not None)
        for number, written in lines:
            try:
                entry = parse_line(written, last_day(file, date))
            except ValueError as error:
                lessons.refuse(file, number, str(error))
                continue
            lessons.add("new", date, f"{file.name}:{number}", entry)
        if end > start:
            spans.append((start, end))
    return spans


def table_row(entry: Entry) -> tuple[str, dict[str, Any]]:
    """Return the name of an entry's table and its row there, without source and night; lists as JSON."""
    known = type(entry).model_fields.keys() - {"version", "kind", "at", "imported_from"}
    fields = entry.model_dump(include={*known})
    row = {name: json.dumps(value) if isinstance(value, list) else value for name, value in fields.items()}
    return TABLES[entry.kind], row


def _generated(
    day: DayConfig, levels: tuple[str, ...] | None, seed: str, date: str, *kinds: Lessons
) -> Iterator[Entry]:
    """Yield the generated day's lines of these kinds."""
    for kind in kinds:
        for line in generated_lines(kind, seed, getattr(day, f"generated_{kind}"), levels, date):
            yield parse_line(json.dumps(line).encode())


def _unknown_policies(picks: list[dict[str, Any]], date: str, nights: Path, checkpoints: Path) -> int:
    """Return how many new picks name a checkpoint that this home has never had. The report mentions them once."""
    known = {GENERATED, IMPORTED, *(folder.name for folder in checkpoints.glob("*"))}
    for _, digests in examined(nights):  # they may have been pruned since
        known.update(digests.values())
    return sum(pick["night"] == date and pick["policy"] not in known for pick in picks)
