"""What the report shows of the owner's own channels: the lines, the losses, and the exam before and after each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.report_evidence import read_json, read_table

CHANNELS = ("corrections", "words", "feedback", "picks")
LEFT_OUT = {
    "exam": "that ask an exam question",
    "too_long": "too long",
    "neutral": "of value 0",
    "too_short": "too short",
    "no_choice": "without a choice",
    "held_out": "kept apart for the reward model",
    "refused": "refused by the chat template",
}


@dataclass(frozen=True)
class Lesson:
    """A channel, or a step: `losses` of its first and last optimizer step, `exam` before and after it, if measured.

    `left_out`: how many of its lines were not learnt, by reason.
    """

    channel: str
    lines: int
    used: int
    left_out: dict[str, int]
    losses: tuple[float, float] | None
    exam: tuple[float, float] | None


def channel_lessons(night: Path, target: str) -> list[Lesson]:
    """The channels with lines, in the order in which they were learnt; `target`: the part of the exam that is shown."""
    found: list[Lesson] = []
    before = accuracy(night / "lessons" / "evaluate", target)
    for channel in CHANNELS:
        folder = night / "lessons" / channel
        counts, curve = read_json(folder, "counts.json") or {}, read_json(folder, "curve.json") or []
        after = accuracy(folder / "evaluate", target)
        exam = (before, after) if before is not None and after is not None else None
        before = after if curve or after is not None else before
        if not counts.get("lines"):
            continue
        losses = (curve[0]["loss"], curve[-1]["loss"]) if curve else None
        left_out = {why: counts[name] for name, why in LEFT_OUT.items() if counts.get(name)}
        found.append(Lesson(channel, counts["lines"], counts["used"], left_out, losses, exam))
    return found


def lesson_figures(lessons: Sequence[Lesson]) -> dict[str, float]:
    """The same for MLflow: `lessons/<channel>/…`."""
    figures: dict[str, float] = {}
    for one in lessons:
        named: dict[str, float] = {"lines": one.lines, "used": one.used}
        if one.losses is not None:
            named |= {"loss_first": one.losses[0], "loss_last": one.losses[1]}
        if one.exam is not None:
            named |= {"exam_before": one.exam[0], "exam_after": one.exam[1]}
        figures |= {f"lessons/{one.channel}/{name}": value for name, value in named.items()}
    return figures


def accuracy(folder: Path, target: str) -> float | None:
    """The share of graded answers that are correct; None where no such exam was sat."""
    table = read_table(folder, "evaluations")
    if table is None:
        return None
    graded: Any = table.loc[table["benchmark"] == target, "correct"].dropna()
    return float(graded.astype(bool).mean()) if len(graded) else None
