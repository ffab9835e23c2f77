"""What the day left: the journal, frozen, and the owner's taste in it, fitted to a reward model."""

from pathlib import Path
from typing import Any

from conf.schema import StudentConfig
from conf.storage.durable import write_atomically
from conf.storage.home import inside
from flows.run.context import Night, log
from models.checkpoint import is_intact, verify
from rewards.data.synthetic_journal import practised_levels
from tasks.journal.freeze import freeze_journal
from tasks.journal.lineage import nights_with_smaller_holdout
from tasks.registry.import_model import STARTER_MODEL, enroll
from tasks.registry.mlflow_registry import DAYTIME, Registry
from tasks.reward_model.fit import figures, fit_reward_model
from tasks.rollouts.teacher_advantages import find_teacher
from tasks.stage import Artifact, committed, uncommit
from tasks.tracking import Tracking
from tasks.workers import WorkerDiedError


def frozen_day(night: Night, champion: Path) -> Artifact:
    """The journal's new lines as tables; a generated day is on the levels that the night practises."""
    config = night.config
    return night.run(
        freeze_journal,
        "freeze_journal",
        day=config.day,
        levels=practised_levels(config.benchmarks),
        seed=str(config.seed),
        date=night.date,
        model=config.name,
        champion=champion,
        journal=night.home.journal,
        nights=night.home.nights,
        checkpoints=night.home.checkpoints,
    )


def reward_model_of(
    night: Night, day: Artifact, champion: Path, tracking: Tracking, exam_questions: tuple[str, ...]
) -> Artifact:
    """The reward model, or the refusal to have one, made again where it was damaged since.

    MLflow keeps its figures, and the digest of one that serves as the tag `reward_model`. No night fails for it: where
    weights cannot be loaded, memory is short or the trainer dies each time, it is refused, also when the night resumes.

    `exam_questions`: those that no pick may ask.
    """
    config, place = night.config, "fit_reward_model"
    arguments: dict[str, Any] = {
        "day": day,
        "date": night.date,
        "checkpoint": champion,
        "config": None if config.preference_learning == "direct" else config.reward_model,
        "trainer_config": config.trainer,
        "student": config.student,
        "seed": config.seed,
        "exam_questions": exam_questions,
        "nights_with_smaller_holdout": nights_with_smaller_holdout(
            champion.name, night.home.nights, config.unseen_share
        ),
        "broke": _broke(night.folder / place),
        "checkpoints": night.home.checkpoints,
        "trainer": night.trainer,
    }
    try:
        fitted = night.run(fit_reward_model, place, **arguments)
    except (WorkerDiedError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's: the next stage would meet it as well
            raise
        log.warning("no reward model could be fitted", exc_info=error)
        broke = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        fitted = night.run(fit_reward_model, place, **arguments | {"broke": broke})
    if fitted.read_json("outcome.json")["serves"] and not is_intact(night.checkpoint(fitted)):
        uncommit(night.folder / place)  # it was damaged since
        fitted = night.run(fit_reward_model, place, **arguments)
    outcome = fitted.read_json("outcome.json")
    tracking.log(figures(outcome), 0)
    if outcome["serves"]:
        tracking.tag(reward_model=outcome["checkpoint"])
    tracking.log_artifact(fitted.folder / "outcome.json", "reward_model")
    return fitted


def _broke(place: Path) -> str | None:
    """How the fit failed when this night tried it before: what was refused then stays so."""
    known = committed(place)
    return None if known is None else known.read_json("outcome.json").get("broke")


IRREPLACEABLE = (
    "no night can make a champion again: bring the folder back from a backup, or go back to the one before with "
    "`nightschool rollback --config {config}`, and begin this night anew with --fresh"
)


def champion_of(night: Night, tracking: Tracking) -> Path:
    """The checkpoint that serves by day; on the first night the student as it comes. It stays tonight's champion."""
    note = night.folder / "champion.txt"
    if not note.exists():
        serving = Registry(tracking.client, night.config.name).named(DAYTIME)
        write_atomically(note, serving.digest if serving else _enrolled(night).name)
    champion = inside(night.home.checkpoints, note.read_text())
    if not is_intact(champion) and committed(night.folder / "enroll"):
        _enrolled(night)
    verify(champion, IRREPLACEABLE.format(config=night.folder / "config.yaml"))
    return champion


def teacher_of(night: Night, student: Path) -> Path | None:
    """The folder of the model that on-policy distillation asks, if the night has any."""
    config = night.config
    if config.on_policy is None or all(step.kind != "on_policy" for step in config.steps):
        return None
    asked = config.on_policy
    if asked.teacher == STARTER_MODEL:
        unpacked = _enrolled(night, "enroll_teacher", StudentConfig(source=STARTER_MODEL))
        asked = asked.model_copy(update={"teacher": str(unpacked)})
    return find_teacher(asked, student, config.student.trust_remote_code)


def _enrolled(night: Night, place: str = "enroll", student: StudentConfig | None = None) -> Path:
    return night.make_checkpoint(
        enroll,
        place,
        student=student or night.config.student,
        checkpoints=night.home.checkpoints,
        trainer=night.trainer,
    )
