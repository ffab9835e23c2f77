"""What each part of the night taught: its lines, its losses, and the exam before and after it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conf.load import load_night
from conf.sections.stages import Step
from models.lessons.pace import read_steps
from tasks.distillation.distill import PACE
from tasks.distillation.trace_filter import FATES
from tasks.incidents import ended_early
from tasks.layout import rounds
from tasks.report.queries import exam_accuracy, read_json
from tasks.tables import PROPOSALS, table_rows

CHANNELS = ("corrections", "words", "feedback", "picks")
NAMES = {"distill": "worked solutions", "self_distill": "its own answers"}
BLOCKS = {"grpo": "", "on_policy": "on-policy ", "self_play": "self-play "}
LEARNT = ("kept", "unknown")  # the fates of traces that were trained on
LEFT_OUT = {
    "exam": "in the exam",
    "too_long": "too long",
    "neutral": "neutral",
    "too_short": "too short",
    "no_choice": "without a choice",
    "held_out": "held out for the reward model",
    "refused": "refused by the chat template",
}


@dataclass(frozen=True)
class Lesson:
    """A channel of the journal, a lesson on worked solutions, or a block of rounds.

    `lines`: of a block, its groups of answers; `used`: of a block, the groups with signal. `left_out`: lines that were
    not used, and texts of self-play that became no problem, by reason. `losses`: of the first and the last optimizer
    step. `exam`: accuracies on the target before and after, where both were measured. `pace`: of a lesson on worked
    solutions with a share of the night's hours, how many of its steps fitted into it.
    """

    channel: str
    lines: int
    used: int
    left_out: dict[str, int]
    losses: tuple[float, float] | None
    exam: tuple[float, float] | None
    pace: str | None = None


def lessons_of(night: Path, target: str) -> list[Lesson]:
    """Return what was taught, in the order of `stages`, the journal's channels one by one.

    Left out are lessons without lines, blocks without an exam after them, and what an early end of the night undid.
    An exam counts for one step: where a step was not examined, the next one has no accuracy before it.
    """
    found: list[Lesson] = []
    before = exam_accuracy(night / "evaluate" / "champion", target)
    early = ended_early(night)
    for step in load_night(night / "config.yaml").steps[: early.steps if early else None]:
        if step.kind == "lessons":
            taught = _channels(night, target)
            trained = [lesson.channel for lesson in taught if lesson.losses]
            before = exam_accuracy(night / "lessons" / trained[-1] / "evaluate", target) if trained else before
        else:
            after = exam_accuracy(night / step.exam, target)
            exam = None if before is None or after is None else (before, after)
            lesson = _block(night, step, exam) if step.is_block else _traces(night, step, exam)
            taught = [lesson] if lesson else []
            changed = step.is_block or (lesson is not None and lesson.losses is not None)
            before = after if changed or after is not None else before
        found += taught
    return found


def _channels(night: Path, target: str) -> list[Lesson]:
    """Return the journal's channels that had lines, in the order in which they were taught."""
    found: list[Lesson] = []
    before = exam_accuracy(night / "lessons" / "evaluate", target)
    for channel in CHANNELS:
        folder = night / "lessons" / channel
        counts, losses = read_json(folder, "counts.json") or {}, _losses(folder)
        after = exam_accuracy(folder / "evaluate", target)
        exam = None if before is None or after is None else (before, after)
        before = after if losses or after is not None else before
        if counts.get("lines"):
            left_out = {why: counts[name] for name, why in LEFT_OUT.items() if counts.get(name)}
            found.append(Lesson(channel, counts["lines"], counts["used"], left_out, losses, exam))
    return found


def _traces(night: Path, step: Step, exam: tuple[float, float] | None) -> Lesson | None:
    counts, losses = read_json(night / step.path, "counts.json") or {}, _losses(night / step.path)
    lines = sum(counts.get(fate, 0) for fate in FATES)
    if not lines:
        return None
    used = sum(counts.get(fate, 0) for fate in LEARNT) if losses else 0
    left_out = {fate.replace("_", " "): counts[fate] for fate in FATES if fate not in LEARNT and counts.get(fate)}
    again = step.path.removeprefix(step.kind).replace("-", " ")  # ` 2` of `distill-2`
    fixed = read_steps(night / step.path / PACE)
    pace = fixed.sentence if fixed else None
    return Lesson(f"{NAMES[step.kind]}{again}", lines, used, left_out, losses, exam, pace)


def _block(night: Path, step: Step, exam: tuple[float, float] | None) -> Lesson | None:
    """Return a block of rounds; None without an exam before and after it."""
    folders = [folder for number, folder in rounds(night) if number in step.rounds]
    metrics = [figures for folder in folders if (figures := read_json(folder / "checkpoint", "metrics.json"))]
    if exam is None or not metrics:
        return None
    groups, useful = (int(sum(figures[name] for figures in metrics)) for name in ("groups", "useful_groups"))
    first, last = step.rounds[0], step.rounds[0] + len(metrics) - 1
    numbers = f"round {first}" if first == last else f"rounds {first} to {last}"
    return Lesson(f"{BLOCKS[step.kind]}{numbers}", groups, useful, _no_problems(folders), None, exam)


def _no_problems(folders: Sequence[Path]) -> dict[str, int]:
    """Return how many texts of these rounds became no problem, by reason; empty without self-play."""
    files = [file for folder in folders if (file := folder / "select_prompts" / "proposals.parquet").exists()]
    counts = Counter(row["verdict"] for file in files for row in table_rows(file, PROPOSALS))
    return {f"{why} texts": number for why, number in sorted(counts.items()) if why != "admitted"}


def _losses(folder: Path) -> tuple[float, float] | None:
    curve = read_json(folder, "curve.json")
    return (curve[0]["loss"], curve[-1]["loss"]) if curve else None
