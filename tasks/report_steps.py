"""What the report shows of each step of the night: what it learnt from, and the exam before and after it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from conf.schema import NightConfig
from conf.stages import Step, steps
from tasks.incidents import ended_early
from tasks.report_evidence import read_json
from tasks.report_lessons import Lesson, accuracy, channel_lessons
from tasks.rounds import rounds
from tasks.trace_filter import FATES

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
