"""The freeze: the day's journal becomes tables, once and for all; bad lines go to a quarantine with a reason."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conf.home import NightError
from conf.journal import Correction, Feedback, Preference, Trace, Words, parse_line
from conf.lessons import DayConfig
from models.checkpoint import digest_file
from rewards import generated_day
from tasks.stage import MANIFEST, stage
from tasks.tables import CORRECTIONS, FEEDBACK, PREFERENCES, QUARANTINE, TRACES, WORDS, write_table

OFFSETS = "offsets.json"


class DamagedFreezeError(NightError):
    """What a night took of the journal is not known any more."""


@stage(tags=["journal"], means=("journal", "nights"))
def freeze_journal(
    folder: Path, *, day: DayConfig, levels: tuple[str, ...] | None, seed: str, date: str, journal: Path, nights: Path
) -> None:
    """Takes every complete journal line that no earlier committed freeze has taken, and the generated day if any.

    Which lines were taken is kept as a byte offset for each file; the journal itself is never touched.
    """
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    offsets = consumed(nights)
    for file in sorted(journal.glob("*.jsonl")):
        offsets[file.name] = _take(file, offsets.get(file.name, 0), rows)
    for line in _generated(day, levels, seed, date):
        _sort_in(json.dumps(line).encode(), "generated", rows)
    for name, schema in {
        "preferences": PREFERENCES,
        "corrections": CORRECTIONS,
        "feedback": FEEDBACK,
        "words": WORDS,
        "traces": TRACES,
        "quarantine": QUARANTINE,
    }.items():
        write_table(folder / f"{name}.parquet", schema, rows[name])
    (folder / OFFSETS).write_text(json.dumps(offsets))


def consumed(nights: Path) -> dict[str, int]:
    """How many bytes of each journal file the committed freezes of all nights have taken.

    Raises DamagedFreezeError where that is not known of one any more: a lesson would be learnt twice, or never.
    """
    taken: dict[str, int] = {}
    for manifest in nights.glob(f"????-??-??/freeze_journal/{MANIFEST}"):
        for name, offset in _offsets(manifest).items():
            taken[name] = max(offset, taken.get(name, 0))
    return taken


def _offsets(manifest: Path) -> dict[str, int]:
    file = manifest.parent / OFFSETS
    try:
        whole = digest_file(file) == json.loads(manifest.read_text())["outputs"][OFFSETS]
    except (OSError, ValueError, KeyError):
        whole = False
    if not whole:
        raise DamagedFreezeError(
            f"{file}: it was damaged: what that night took of the journal is not known; restore the file, or remove "
            f"{manifest.parent}, and its lines are taken once more"
        )
    return json.loads(file.read_text())


def check_file(file: Path) -> tuple[int, list[dict[str, Any]]]:
    """How many lines of a journal file are good, and the others with their number and what is wrong with them."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    end = _take(file, 0, rows)
    bad = [{"line": row["line"], "reason": row["reason"]} for row in rows.pop("quarantine", [])]
    content = file.read_bytes()
    if content[end:].strip():
        reason = "cut off, or still being written: it has no end, and the freeze leaves it for the next night"
        bad.append({"line": content.count(b"\n") + 1, "reason": reason})
    return sum(len(lines) for lines in rows.values()), bad


def _take(file: Path, offset: int, rows: dict[str, list[dict[str, Any]]]) -> int:
    """Sorts in the lines from a byte offset on. Returns the offset after the last complete line.

    The last line is complete with its line break, or where it is a whole entry without one; else it is still being
    written and belongs to the next night.
    """
    content = file.read_bytes()
    number = content.count(b"\n", 0, offset)
    *complete, last = content[offset:].split(b"\n")
    for line in complete:
        number += 1
        offset += len(line) + 1
        if line.strip():
            _sort_in(line, f"{file.name}:{number}", rows)
    if _is_entry(last):
        _sort_in(last, f"{file.name}:{number + 1}", rows)
        offset += len(last)
    return offset


def _is_entry(line: bytes) -> bool:
    try:
        parse_line(line)
    except ValueError:
        return False
    return True


def _sort_in(line: bytes, source: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    try:
        entry = parse_line(line)
    except ValueError as error:
        name, _, number = source.rpartition(":")
        rows["quarantine"].append({"file": name, "line": int(number), "reason": str(error)})
        return
    table, row = _row(entry)
    rows[table].append(row | {"source": source})


def _row(entry: Preference | Correction | Feedback | Words | Trace) -> tuple[str, dict[str, Any]]:
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


def _generated(day: DayConfig, levels: tuple[str, ...] | None, seed: str, date: str) -> Iterator[dict[str, Any]]:
    yield from generated_day.traces(seed, day.generated_traces, levels, date)
    yield from generated_day.preferences(seed, day.generated_preferences, levels, date)
