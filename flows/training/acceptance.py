"""Lessons and blocks of rounds that can be taken back: a quiz before and after each one."""

from pathlib import Path

from conf.sections.stages import Step
from conf.storage.layout import check_path, quiz_of_block, run_name
from flows.run.context import Night
from flows.training.validation import Quizzes
from tasks.stage import Artifact
from tasks.training.take_back import OUTCOME, judge_lesson, sentence


def accept_lesson(night: Night, quizzes: Quizzes, step: Step, before: Path, after: Path) -> Path:
    """Quiz the student before and after a lesson. Returns the checkpoint to go on with, and notes a lesson taken back.

    It is the lesson's own, unless the student got worse. Without quizzes a lesson always stays.
    """
    taken = quizzes.ask(f"{step.path}-before", before), quizzes.ask(step.path, after)
    again = " Its journal lines are taught again on a later night."
    return _judge(night, f"The lesson {run_name(step.path)}", step, taken, (before, after), again)


def accept_block(night: Night, quizzes: Quizzes, step: Step, before: Path, after: Path) -> Path:
    """Quiz the student before and after a block of rounds, as `accept_lesson` does.

    Where time runs out or the engine dies, a block stays.
    """
    name = quiz_of_block(step.path)
    taken = quizzes.ask_if_possible(f"{name}-before", before), quizzes.ask_if_possible(name, after)
    return _judge(night, f"The block of {run_name(name)}", step, taken, (before, after))


def _judge(
    night: Night,
    what: str,
    step: Step,
    taken: tuple[Artifact | None, Artifact | None],
    checkpoints: tuple[Path, Path],
    again: str = "",
) -> Path:
    night.rest_engine()
    (first, second), (before, after) = taken, checkpoints
    if first is None or second is None:
        return after
    path = f"{check_path(step.path)}/verdict"
    inputs = {"quizzes": {"before": first, "after": second}, "checkpoints": {"before": before, "after": after}}
    known = judge_lesson.committed(night.folder, path, **inputs)
    verdict = night.run(judge_lesson, path, **inputs)
    if known is None and (said := sentence(what, verdict.read_json(OUTCOME))):
        night.note(said + again)
    kept = night.checkpoint(verdict)
    night.edges.add(verdict, kept)
    return kept
