"""What each step of the night's recipe taught: how many lines, with which losses and quiz accuracies."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from conf.load import load_night
from conf.sections.stages import Step
from conf.storage.layout import check_path, committed_json, quiz_of_block, rounds
from models.lessons.pace import read_steps
from tasks.distillation.distill import PACE
from tasks.distillation.trace_filter import FATES, LEARNED
from tasks.monitoring.incidents import ended_early
from tasks.report.queries import quiz_results
from tasks.tables import PROPOSALS, table_rows

CHANNELS = ("corrections", "words", "feedback", "picks")
NAMES = {"distill": "worked solutions", "self_distill": "its own answers"}
BLOCKS = {"grpo": "", "self_play": "self-play "}
LEFT_OUT = {  # why a line was not used
    "dropped": "with a wrong answer",
    "unreadable": "without an answer",
    "exam": "in the exam",
    "held_out": "held out to judge the models",
    "refused": "refused by the chat template",
    "too_long": "too long",
    "too_short": "too short",
    "neutral": "neutral",
    "no_choice": "without a choice",
    "duplicate": "duplicates",
    "surplus": "more than their problems need",
    "known": "on problems solved already",
    "later": "left for later nights",
}
Pair = tuple[float, float] | None


class Lesson(NamedTuple):
    """A channel of the journal, a lesson on worked solutions, or a block of rounds.

    `lines`, `used`: how many lines there were, and how many were used; for a block, the number of groups, and of groups
    with signal. `notes`: remarks for the report, such as counts of unused lines by reason. `losses`: the loss at the
    first and the last step, None for a block. `quiz`: the accuracy before and after, None if either is missing. Of the
    journal's channels, only the last one taught has a quiz.
    """

    channel: str
    lines: int
    used: int
    notes: list[str]
    losses: Pair
    quiz: Pair


def lessons_of(night: Path) -> list[Lesson]:
    """Return the night's lessons in the order of the configured `stages`, with one lesson per channel of the journal.

    Leaves out lessons without lines, and steps that were undone or never taken because training ended early.
    """
    found: list[Lesson] = []
    quizzes = {name: quiz["accuracy"] for name, quiz in quiz_results(night).items()}
    before, early = quizzes.get("start"), ended_early(night)
    for step in load_night(night / "config.yaml").steps[: early.steps if early else None]:
        after = quizzes.get(quiz_of_block(step.path) if step.is_block else step.path)
        before = quizzes.get(f"{step.path}-before", before)
        quiz = None if before is None or after is None else (before, after)
        if step.kind == "lessons":
            found += _channels(night, quiz)
        elif lesson := _block(night, step, quiz) if step.is_block else _traces(night, step, quiz):
            found.append(lesson)
        verdict = committed_json(night / check_path(step.path) / "verdict", "outcome.json") or {}
        if after is not None and verdict.get("outcome") != "taken_back":
            before = after
    return found


def _channels(night: Path, quiz: Pair) -> list[Lesson]:
    """Return a lesson for each journal channel that had lines, in the order in which they were taught."""
    found: list[Lesson] = []
    for channel in CHANNELS:
        folder = night / "lessons" / channel
        counts = committed_json(folder, "counts.json") or {}
        if counts.get("lines"):
            notes, losses = _counted(counts, LEFT_OUT), _losses(folder)
            found.append(Lesson(channel, counts["lines"], counts["used"], notes, losses, None))
    return [*found[:-1], found[-1]._replace(quiz=quiz)] if found else []


def _traces(night: Path, step: Step, quiz: Pair) -> Lesson | None:
    folder = night / step.path
    counts, losses = committed_json(folder, "counts.json") or {}, _losses(folder)
    lines = sum(counts.get(fate, 0) for fate in FATES)
    if not lines:
        return None
    used = sum(counts.get(fate, 0) for fate in LEARNED) if losses else 0
    fixed = read_steps(folder / PACE)
    notes = [*([fixed.sentence] if fixed else []), *_counted(counts, LEFT_OUT)]
    return Lesson(f"{NAMES[step.kind]}{step.again}", lines, used, notes, losses, quiz)


def _block(night: Path, step: Step, quiz: Pair) -> Lesson | None:
    """Return a block of rounds as a lesson, or None if none of its rounds was finished."""
    folders = [folder for number, folder in rounds(night) if number in step.rounds]
    metrics = [figures for folder in folders if (figures := committed_json(folder / "checkpoint", "metrics.json"))]
    if not metrics:
        return None
    groups, useful = (int(sum(figures[name] for figures in metrics)) for name in ("groups", "useful_groups"))
    first, last = step.rounds[0], step.rounds[0] + len(metrics) - 1
    numbers = f"round {first}" if first == last else f"rounds {first} to {last}"
    return Lesson(f"{BLOCKS[step.kind]}{numbers}", groups, useful, _no_problems(folders), None, quiz)


def _no_problems(folders: Sequence[Path]) -> list[str]:
    """Return a note per reason why self-play texts of these rounds were not admitted, such as `3 repeated texts`."""
    files = [file for folder in folders if (file := folder / "select_prompts" / "proposals.parquet").exists()]
    counts = Counter(row["verdict"] for file in files for row in table_rows(file, PROPOSALS))
    return _counted(counts, {why: f"{why} texts" for why in sorted(counts) if why != "admitted"})


def _counted(counts: Mapping[str, int], names: Mapping[str, str]) -> list[str]:
    return [f"{counts[key]} {name}" for key, name in names.items() if counts.get(key)]


def _losses(folder: Path) -> Pair:
    curve = committed_json(folder, "curve.json")
    return (curve[0]["loss"], curve[-1]["loss"]) if curve else None
