"""What the report shows of the owner's own channels: the lines, the losses, and the exam before and after each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conf.schema import NightConfig
from conf.sections.stages import Step, steps
from tasks.distillation.trace_filter import FATES
from tasks.incidents import ended_early
from tasks.layout import rounds
from tasks.report.queries import read_json, read_table

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


LEARNT = ("kept", "unknown")
NAMES = {"distill": "worked solutions", "self_distill": "its own answers"}


def step_lessons(night: Path, target: str) -> list[Lesson]:
    """The steps of `stages` in their order, the owner's channels one by one; those that found nothing to learn are not.

    A block of rounds is there only where an exam followed it: its lines are groups of answers, of which those with
    signal were used. `target`: the part of the exam that is shown. A step has no figures of it that sat none, nor the
    next one, which would be told what both did. What a night's early end undid is not there.
    """
    found: list[Lesson] = []
    before = accuracy(night / "evaluate" / "champion", target)
    early = ended_early(night)
    for step in _steps(night)[: early.steps if early else None]:
        if step.kind == "lessons":
            own = channel_lessons(night, target)
            learnt = [one.channel for one in own if one.losses]
            before = accuracy(night / "lessons" / learnt[-1] / "evaluate", target) if learnt else before
        else:
            after = accuracy(night / step.exam, target)
            exam = (before, after) if before is not None and after is not None else None
            one = _block(night, step, exam) if step.is_block else _traces(night, step, exam)
            own = [one] if one else []
            changed = step.is_block or (one is not None and one.losses is not None)
            before = after if changed or after is not None else before
        found += own
    return found


def _steps(night: Path) -> tuple[Step, ...]:
    """As the frozen configuration has them; the default ones where it says nothing of them."""
    file = night / "config.yaml"
    config: Mapping[str, Any] = (yaml.safe_load(file.read_text()) if file.exists() else None) or {}
    stages = config.get("stages") or NightConfig.model_fields["stages"].default
    return steps(stages, (config.get("grpo") or {}).get("rounds", 0))


def _traces(night: Path, step: Step, exam: tuple[float, float] | None) -> Lesson | None:
    """A lesson of worked solutions; none where there was not one."""
    counts = read_json(night / step.place, "counts.json") or {}
    curve = read_json(night / step.place, "curve.json") or []
    lines = sum(counts.get(fate, 0) for fate in FATES)
    if not lines:
        return None
    used = sum(counts.get(fate, 0) for fate in LEARNT) if curve else 0
    left_out = {fate.replace("_", " "): counts[fate] for fate in FATES if fate not in LEARNT and counts.get(fate)}
    losses = (curve[0]["loss"], curve[-1]["loss"]) if curve else None
    return Lesson(f"{NAMES[step.kind]}{_again(step)}", lines, used, left_out, losses, exam)


def _block(night: Path, step: Step, exam: tuple[float, float] | None) -> Lesson | None:
    """A block of rounds with an exam after it."""
    own = [folder for number, folder in rounds(night) if number in step.rounds]
    known = [figures for folder in own if (figures := read_json(folder / "checkpoint", "metrics.json"))]
    if exam is None or not known:
        return None
    groups, useful = (int(sum(one.get(name, 0) for one in known)) for name in ("groups", "useful_groups"))
    first, last = step.rounds[0], step.rounds[0] + len(known) - 1
    numbers = f"round {first}" if first == last else f"rounds {first} to {last}"
    return Lesson(numbers if step.kind == "grpo" else f"on-policy {numbers}", groups, useful, {}, None, exam)


def _again(step: Step) -> str:
    """What tells a lesson that comes twice from its first time."""
    return step.place.removeprefix(step.kind).replace("-", " ")
