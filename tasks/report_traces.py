"""What the report says of the worked solutions that a night had: by source, of the teacher, and of the exam."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.report_evidence import read_json, read_table
from tasks.trace_filter import FATES

DRAWN = ("kept", "unknown", "later")  # the fates that differ between two lessons on the same traces


def trace_sources(night: Path) -> list[dict[str, Any]]:
    """How many traces of each source were kept and why others were not; of the lessons of its own answers as well.

    A second lesson reads the first one's again, which are told once: as the first one drew those it had room for.
    """
    return _told_once(night, "sources.json", _before_the_draw)


def distilled(counts: Mapping[str, int] | None) -> dict[str, int] | None:
    """A lesson's counts, with the sum of those that were `left_out` for what they are; None of no lesson."""
    if not counts:
        return None
    return {**counts, "left_out": sum(count for fate, count in counts.items() if fate not in DRAWN)}


def fates_met(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fates that any of the traces had."""
    return [fate for fate in FATES if any(row.get(fate) for row in rows)]


def trace_remarks(night: Path) -> list[str]:
    """A line each on the rows of files that are no traces, on the exam's problems among them, and on the teacher."""
    remarks = []
    bad = read_table(night / "import_traces", "quarantine")
    if bad is not None and len(bad):
        first = bad.iloc[0]
        where = f"{first['file']}:{first['line']}"
        remarks.append(
            f"Rows of files that are no worked solutions: {len(bad)}; the first: {where}: {first['reason']}."
        )
    hits = _told_once(night, "contamination.json")
    if hits:
        near = sum(hit["match"] == "near" for hit in hits)
        remarks.append(
            f"Worked solutions left out because they ask problems of the exam: {len(hits)}, {near} of them nearly and "
            f"not word for word; the first: {hits[0]['question'][:80]}"
        )
    asked = [read_json(folder, "asked.json") for folder in sorted(night.glob("ask_teacher*"))]
    return [*remarks, *(_teacher(one) for one in asked if one)]


def _told_once(night: Path, name: str, key: Callable[[dict[str, Any]], Any] = dict) -> list[dict[str, Any]]:
    """The rows of a file of all lessons, without those that an earlier one had, with the same `key`."""
    found: list[dict[str, Any]] = []
    for folder in _lessons(night):
        known = [key(row) for row in found]
        found += [row for row in read_json(folder, name) or [] if key(row) not in known]
    return found


def _before_the_draw(row: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """What a source's row was before a lesson drew those that it had room for."""
    others = {name: value for name, value in row.items() if name not in DRAWN}
    return others, sum(row.get(name, 0) for name in DRAWN)


def _lessons(night: Path) -> list[Path]:
    return sorted([*night.glob("distill*"), *night.glob("self_distill*")])


def _teacher(asked: Mapping[str, Any]) -> str:
    """One line, whatever happened."""
    name = f"The teacher {asked['teacher']}"
    if not asked["problems"]:
        return f"{name} was asked nothing: no problem is known that the student tried of late and never solved."
    told = (
        f"{name} answered {asked['answered']} of {asked['questions']} questions about {asked['problems']} problems "
        f"({asked['cached']} of them earlier), for {asked['tokens']} tokens"
    )
    told += f" and {asked['usd']:.4f} USD" if asked["usd"] else ""
    if asked["failed"]:
        told += "; without an answer: " + ", ".join(f"{count} × {why}" for why, count in asked["failed"].items())
    return told + (f"; it was not asked any further: {asked['stopped']}." if asked["stopped"] else ".")
