"""A checkpoint sits the night's exam, and what came of it is told."""

from collections.abc import Mapping
from pathlib import Path

from conf.sections.benchmark import ExamPart
from flows.run.context import Night, log
from tasks.evaluation.cache import versions
from tasks.evaluation.evaluate import evaluate
from tasks.evaluation.metrics import as_metrics, exam_figures
from tasks.stage import Artifact
from tasks.tracking import Tracking
from tasks.workers import HoursOverError, WorkerDiedError


def sit(night: Night, place: str, checkpoint: Path, parts: tuple[ExamPart, ...] | None = None) -> Artifact:
    """Its answers to all parts of the exam, judged, at a place in the night's folder; nobody answers anything twice.

    `parts`: those of another exam than the one that decides.
    """
    config = night.config
    return night.run(
        evaluate,
        place,
        parts=config.exam.parts if parts is None else parts,
        checkpoint=checkpoint,
        student=config.student,
        config=config.sampler,
        sandbox=config.sandbox,
        max_completion_tokens=config.exam.max_completion_tokens,
        engine=night.engine,
        exams=night.home.exams,
        versions=tuple(versions().values()),
    )


def sit_for_report(night: Night, place: str, checkpoint: Path) -> None:
    """An exam that nothing depends on: left out, with a line, where there is no time for it or the engine dies."""
    try:
        sit(night, place, checkpoint)
    except (HoursOverError, WorkerDiedError) as error:
        log.warning("%s is left out: %s", place, error)


def slowest(sat: Mapping[str, Artifact]) -> float:
    """Seconds that the slowest of these exams took when it was sat, be it on another night."""
    return max(one.figure("seconds_sat") or one.seconds for one in sat.values())


def log_exams(tracking: Tracking, sat: Mapping[str, Artifact]) -> None:
    """The figures of all that sat, for MLflow: one metric a figure, whose steps are the sitters in their order."""
    for step, artifact in enumerate(sat.values()):
        tracking.log(as_metrics(exam_figures(artifact.folder)), step)
