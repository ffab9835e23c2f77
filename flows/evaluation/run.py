"""Evaluate a checkpoint within a night, and log the exams' figures."""

from collections.abc import Mapping
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.benchmark import ExamPart
from flows.run.context import Night, log
from tasks.evaluation.cache import versions
from tasks.evaluation.english import mean_nats
from tasks.evaluation.evaluate import evaluate
from tasks.evaluation.metrics import as_metrics, exam_figures
from tasks.evaluation.outcomes import outcomes
from tasks.stage import Artifact, committed
from tasks.tables import EVALUATIONS, read_table
from tasks.tracking import Tracking
from tasks.workers import HoursOverError, WorkerDiedError


def evaluate_checkpoint(
    night: Night, stage_path: str, checkpoint: Path, parts: tuple[ExamPart, ...] | None = None
) -> Artifact:
    """Evaluate a checkpoint on the night's exam, or on other `parts`. Reuses cached results."""
    config = night.config
    return night.run(
        evaluate,
        stage_path,
        parts=config.exam.parts if parts is None else parts,
        checkpoint=checkpoint,
        student=config.student,
        config=config.sampler,
        sandbox=config.sandbox,
        max_completion_tokens=config.exam.max_completion_tokens,
        engine=night.engine,
        exams=night.home.exams,
        versions=tuple(versions().values()),
        english=config.exam.english_margin is not None and parts is None,
    )


def evaluate_for_report(night: Night, stage_path: str, checkpoint: Path) -> None:
    """Evaluate a checkpoint for the report alone: skipped with a log line where time runs out or the engine dies."""
    try:
        evaluate_checkpoint(night, stage_path, checkpoint)
    except (HoursOverError, WorkerDiedError) as error:
        log.warning("%s is skipped: %s", stage_path, error)


def target_accuracy(exam: Artifact, config: NightConfig) -> float:
    """Return the share of the exam's target that was solved; what could not be graded counts as wrong."""
    table = read_table(exam.folder / "evaluations.parquet", EVALUATIONS)
    return float(outcomes(table[table.benchmark == config.exam.target.name]).fillna(0.0).mean())


def slowest_exam(exams: Mapping[str, Artifact]) -> float:
    """Return the seconds of the slowest of these exams, as they were when it was not cached."""
    return max(exam.figure("seconds_sat") or exam.seconds for exam in exams.values())


def log_day_copy(tracking: Tracking, night: Path) -> None:
    """Log the exam's figures of the owner's day copy, if it sat the exam, as `day_copy/…`, and its ranking of picks."""
    figures: dict[str, float] = {}
    if exam := committed(night / "evaluate" / "day"):
        figures |= as_metrics(exam_figures(exam.folder))
    if ranking := committed(night / "picks" / "day"):
        figures["exam/picks/accuracy"] = ranking.read_json("ranking.json")["accuracy"]
    if figures:
        tracking.log({name.replace("exam/", "day_copy/", 1): value for name, value in figures.items()}, 0)


def log_exams(tracking: Tracking, exams: Mapping[str, Artifact]) -> None:
    """Log the exams' figures to MLflow: one metric a figure, whose steps are the models in their order."""
    for step, exam in enumerate(exams.values()):
        nats = mean_nats(exam.folder)
        english = {} if nats is None else {"exam/english/nats": nats}
        tracking.log(as_metrics(exam_figures(exam.folder)) | english, step)
