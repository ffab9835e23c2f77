"""Lessons that can be taken back: a quiz before and after each one."""

from pathlib import Path

from conf.sections.stages import Step
from conf.storage.layout import check_path, run_name
from flows.run.context import Night
from flows.training.validation import Quizzes
from tasks.training.take_back import OUTCOME, judge_lesson, sentence


def accept_lesson(night: Night, quizzes: Quizzes, step: Step, before: Path, after: Path) -> Path:
    """Quiz the student before and after a lesson. Returns the checkpoint to go on with, and notes a lesson taken back.

    It is the lesson's own, unless the student got worse. Without quizzes a lesson always stays.
    """
    taken = quizzes.ask(f"{step.path}-before", before), quizzes.ask(step.path, after)
    night.rest_engine()
    if taken[0] is None or taken[1] is None:
        return after
    path = f"{check_path(step.path)}/verdict"
    inputs = {"quizzes": {"before": taken[0], "after": taken[1]}, "checkpoints": {"before": before, "after": after}}
    known = judge_lesson.committed(night.folder, path, **inputs)
    verdict = night.run(judge_lesson, path, **inputs)
    if known is None and (what := sentence(run_name(step.path), verdict.read_json(OUTCOME))):
        night.note(what)
    kept = night.checkpoint(verdict)
    night.edges.add(verdict, kept)
    return kept
