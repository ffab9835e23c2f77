"""The freeze: the day's journal becomes tables, once and for all; bad lines go to a quarantine with a reason."""

import datetime
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conf.sections.lessons import DayConfig
from conf.storage.durable import sync
from conf.storage.journal import IMPORTED, Correction, Entry, Feedback, Preference, Trace, Words, lesson_of, parse_line
from conf.storage.journal_file import is_over, whole_lines
from models.checkpoint import parent_of
from rewards.data import synthetic_journal
from tasks.journal.lineage import Taught, examined, taught_by
from tasks.journal.replay import last_day, learnt, replayed
from tasks.journal.spans import Spans, Taken, consumed, free, note_taken, taken_before
from tasks.stage import stage
from tasks.tables import CORRECTIONS, FEEDBACK, GENERATED, PREFERENCES, QUARANTINE, TRACES, WORDS, write_table

LESSONS = {
    "preferences": PREFERENCES,
    "corrections": CORRECTIONS,
    "feedback": FEEDBACK,
    "words": WORDS,
    "traces": TRACES,
}


@stage(resources=("journal", "nights", "checkpoints"))
def freeze_journal(
    folder: Path,
    *,
    day: DayConfig,
    levels: tuple[str, ...] | None,
    seed: str,
    date: str,
    model: str,
    champion: Path,
    journal: Path,
    nights: Path,
    checkpoints: Path,
) -> dict[str, float]:
    """Takes every complete journal line that no earlier committed freeze has taken, and the generated day if any.

    Lessons of earlier nights that the champion does not have come along (see `tasks/journal/replay.py`). Which lines
    were taken is kept as byte offsets for each file (`tasks/journal/spans.py`); the journal is never touched.
    counts.json: of each kind, how many lines are new, replayed, generated, and duplicates that were left out. The
    figure `unknown_policies`: how many new picks are of a checkpoint that this home has never had; what lies on the
    disk now tells it, so it is no output.
    """
    lessons = _Lessons()
    before, parts, line = consumed(nights), list(taken_before(nights, date, model)), taught_by(champion.name, nights)
    for again in replayed(journal, parts, line):
        lessons.add("replayed", again.night, again.place, again.entry, again.learnt)
    taken: dict[str, Spans] = {}
    for file in sorted(journal.glob("*.jsonl")):
        if spans := _take(file, before.get(file.name, ()), date, line, lessons):
            taken[file.name] = spans
    taught = parent_of(champion) is not None
    for line in _generated(day, levels, seed, date, taught):
        lessons.add(GENERATED, date, GENERATED, parse_line(json.dumps(line).encode()), taught)
    for name, schema in LESSONS.items():
        write_table(folder / f"{name}.parquet", schema, lessons.rows[name])
    write_table(folder / "quarantine.parquet", QUARANTINE, lessons.quarantine)
    counts = {**lessons.counts, "quarantined": len(lessons.quarantine)}
    (folder / "counts.json").write_text(json.dumps(counts))
    note_taken(folder, model, taken, parts)
    return {"unknown_policies": _unknown_policies(lessons.rows["preferences"], date, nights, checkpoints)}


@dataclass
class _Lessons:
    """The rows of the lesson tables, what was refused, and how many lines came to what."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    quarantine: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter(new=0, replayed=0, generated=0, duplicates=0) for name in LESSONS}
    )
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, origin: str, night: str, place: str, entry: Entry, learnt: bool = False) -> None:
        """A lesson becomes a row, once; a generated day is drawn with repetitions, and stays as it is.

        What the champion has learnt and its owner says again is a lesson again.
        """
        table, row = _row(entry)
        lesson = lesson_of(entry)
        if origin != GENERATED and (known := self.seen.get(lesson)) is not None:
            self.counts[table]["duplicates"] += 1
            if not learnt:
                known.pop("learnt", None)
            return
        row |= {"source": place, "night": night} | ({"learnt": True} if learnt else {})
        self.seen[lesson] = row
        self.counts[table][origin] += 1
        self.rows[table].append(row)

    def refuse(self, file: Path, line: int, reason: str) -> None:
        """A line goes to the quarantine; 0 is the whole file."""
        self.quarantine.append({"file": file.name, "line": line, "reason": reason})


def _take(file: Path, taken: Spans, date: str, line: Sequence[Taught], lessons: _Lessons) -> Spans:
    """Adds the lines that no night has taken, and returns where in the file they lie.

    In a file that is written no more the last line counts as it is. What a freeze took that is gone may be in the
    champion by a later night's replay.
    """
    try:
        sync(file)  # a power cut must not take back what is noted as taken
        content = file.read_bytes()
    except OSError as error:
        lessons.refuse(
            file, 0, f"cannot be read ({error.strerror}): none of its lines was taken; check its permissions"
        )
        return []
    if taken and (before := max(end for _, end in taken)) > len(content):
        lessons.refuse(
            file,
            0,
            f"has {len(content)} bytes, and earlier nights took {before} of it: no line was taken; give it another "
            "name, and all of it is taken anew",
        )
        return []
    over, spans = is_over(file, datetime.date.fromisoformat(date)), []
    for start, until in free(taken):
        lines, end = whole_lines(content[:until], start, ended=over or until is not None)
        part = Taken(date, file.name, start, end)
        for number, written in lines:
            try:
                entry = parse_line(written, last_day(file, date))
            except ValueError as error:
                lessons.refuse(file, number, str(error))
                continue
            if (known := learnt(entry, part, line)) is not None:
                lessons.add("new", date, f"{file.name}:{number}", entry, known)
        if end > start:
            spans.append((start, end))
    return spans


def _row(entry: Entry) -> tuple[str, dict[str, Any]]:
    if isinstance(entry, Words):
        return "words", {"text": entry.text}
    messages = {"messages": json.dumps([message.model_dump() for message in entry.messages])}
    match entry:
        case Preference():
            picked = {"responses": json.dumps(entry.responses), "chosen": entry.chosen, "policy": entry.policy}
            return "preferences", messages | picked
        case Correction():
            return "corrections", messages | {"response": entry.response, "correction": entry.correction}
        case Feedback():
            return "feedback", messages | {"response": entry.response, "value": entry.value}
        case Trace():
            known = {"teacher": entry.teacher, "benchmark": entry.benchmark, "truth": entry.truth}
            return "traces", messages | {"response": entry.response} | known


def _generated(
    day: DayConfig, levels: tuple[str, ...] | None, seed: str, date: str, taught: bool
) -> Iterator[dict[str, Any]]:
    """`taught`: the champion is no more the student as it came. It has had these lessons, and rounds since, which more
    of the same would undo; the picks go on to judge.
    """
    yield from synthetic_journal.preferences(seed, day.generated_preferences, levels, date)
    if not taught:
        yield from synthetic_journal.traces(seed, day.generated_traces, levels, date)
        yield from synthetic_journal.corrections(seed, day.generated_corrections, levels, date)
        yield from synthetic_journal.feedback(seed, day.generated_feedback, levels, date)
        yield from synthetic_journal.words(seed, day.generated_words, levels, date)


def _unknown_policies(picks: list[dict[str, Any]], date: str, nights: Path, checkpoints: Path) -> int:
    """How many new picks are of a checkpoint that this home has never had. They count all the same: a pick is a pick.

    The report tells its owner of them, once: those that are replayed were told before.
    """
    known = {GENERATED, IMPORTED, *(folder.name for folder in checkpoints.glob("*"))}
    for _, sat in examined(nights):  # pruned, perhaps
        known.update(sat.values())
    return sum(pick["night"] == date and pick["policy"] not in known for pick in picks)
