"""What each part of the night taught: its lines, its losses, and the quiz before and after it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conf.load import load_night
from conf.sections.stages import Step
from models.lessons.pace import read_steps
from tasks.distillation.distill import PACE
from tasks.distillation.trace_filter import FATES
from tasks.incidents import ended_early
from tasks.layout import check_path, quiz_of_block, rounds
from tasks.report.queries import quiz_results, read_json
from tasks.tables import PROPOSALS, table_rows

CHANNELS = ("corrections", "words", "feedback", "picks")
NAMES = {"distill": "worked solutions", "self_distill": "its own answers"}
BLOCKS = {"grpo": "", "on_policy": "on-policy ", "self_play": "self-play "}
LEARNED = ("kept", "unknown")  # the fates of traces that were trained on
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
    step. `quiz`: accuracies in the quiz before and after, where both were taken; of the journal's channels, with the
    last one. `pace`: of a lesson on worked solutions with a share of the night's hours, how many of its steps fitted
    into it.
    """

    channel: str
    lines: int
    used: int
    left_out: dict[str, int]
    losses: tuple[float, float] | None
    quiz: tuple[float, float] | None
    pace: str | None = None


def lessons_of(night: Path) -> list[Lesson]:
    """Return what was taught, in the order of `stages`, the journal's channels one by one.

    Left out are lessons without lines, and what an early end of the night undid.
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
        before = before if after is None or _was_taken_back(night, step) else after
    return found


def _was_taken_back(night: Path, step: Step) -> bool:
    verdict = read_json(night / check_path(step.path) / "verdict", "outcome.json")
    return verdict is not None and verdict["outcome"] == "taken_back"


def _channels(night: Path, quiz: tuple[float, float] | None) -> list[Lesson]:
    """Return the journal's channels that had lines, in the order in which they were taught."""
    found: list[Lesson] = []
    for channel in CHANNELS:
        folder = night / "lessons" / channel
        counts, losses = read_json(folder, "counts.json") or {}, _losses(folder)
        if counts.get("lines"):
            left_out = {why: counts[name] for name, why in LEFT_OUT.items() if counts.get(name)}
            found.append(Lesson(channel, counts["lines"], counts["used"], left_out, losses, None))
    return [*found[:-1], replace(found[-1], quiz=quiz)] if found else []


def _traces(night: Path, step: Step, quiz: tuple[float, float] | None) -> Lesson | None:
    counts, losses = read_json(night / step.path, "counts.json") or {}, _losses(night / step.path)
    lines = sum(counts.get(fate, 0) for fate in FATES)
    if not lines:
        return None
    used = sum(counts.get(fate, 0) for fate in LEARNED) if losses else 0
    left_out = {fate.replace("_", " "): counts[fate] for fate in FATES if fate not in LEARNED and counts.get(fate)}
    again = step.path.removeprefix(step.kind).replace("-", " ")  # ` 2` of `distill-2`
    fixed = read_steps(night / step.path / PACE)
    pace = fixed.sentence if fixed else None
    return Lesson(f"{NAMES[step.kind]}{again}", lines, used, left_out, losses, quiz, pace)


def _block(night: Path, step: Step, quiz: tuple[float, float] | None) -> Lesson | None:
    """Return a block of rounds; None where there was no round."""
    folders = [folder for number, folder in rounds(night) if number in step.rounds]
    metrics = [figures for folder in folders if (figures := read_json(folder / "checkpoint", "metrics.json"))]
    if not metrics:
        return None
    groups, useful = (int(sum(figures[name] for figures in metrics)) for name in ("groups", "useful_groups"))
    first, last = step.rounds[0], step.rounds[0] + len(metrics) - 1
    numbers = f"round {first}" if first == last else f"rounds {first} to {last}"
    return Lesson(f"{BLOCKS[step.kind]}{numbers}", groups, useful, _no_problems(folders), None, quiz)


def _no_problems(folders: Sequence[Path]) -> dict[str, int]:
    """Return how many texts of these rounds became no problem, by reason; empty without self-play."""
    files = [file for folder in folders if (file := folder / "select_prompts" / "proposals.parquet").exists()]
    counts = Counter(row["verdict"] for file in files for row in table_rows(file, PROPOSALS))
    return {f"{why} texts": number for why, number in sorted(counts.items()) if why != "admitted"}


def _losses(folder: Path) -> tuple[float, float] | None:
    curve = read_json(folder, "curve.json")
    return (curve[0]["loss"], curve[-1]["loss"]) if curve else None
