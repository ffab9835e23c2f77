"""The inputs of a night: champion, starting checkpoint, teacher, frozen journal and reward model."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conf.schema import NightConfig, StudentConfig
from conf.sections.benchmark import ExamPart
from conf.storage.durable import write_atomically
from conf.storage.home import START, SUMMARY, InputError, inside
from flows.run.context import CHANGED, Night, log
from flows.run.history import last_finished
from flows.run.levels import joined_levels
from models.hf.checkpoint import base_of, is_adapter, is_intact, learned, verify
from rewards.data.benchmarks import configured
from rewards.data.synthetic_journal import practised_levels
from rewards.verifier import Problem
from tasks.journal.freeze import freeze_journal
from tasks.journal.read import lessons_in
from tasks.journal.tables import GENERATED
from tasks.monitoring.tracking import Tracking
from tasks.registry.import_model import STARTER_MODEL, enroll
from tasks.registry.mlflow_registry import DAYTIME, Registry
from tasks.reward_model.fit import figures, fit_reward_model
from tasks.rollouts.teacher_advantages import find_teacher
from tasks.stage import Artifact, committed
from tasks.workers.worker import WorkerDiedError

DAMAGED_CHAMPION = (
    "restore the folder from a backup, or go back to the previous champion with "
    "`nightschool rollback --config {config}`, and start this night over with --fresh"
)


def log_datasets(tracking: Tracking, config: NightConfig, exam: Mapping[ExamPart, Sequence[Problem]]) -> None:
    """Record in MLflow which problems the night trains on, and which its exam asks."""
    for entry in config.benchmarks:
        benchmark = configured(entry, config.sandbox)
        tracking.log_dataset(f"{entry.label}-train", "training", entry.source, benchmark.problems("train"))
    for part, problems in exam.items():
        tracking.log_dataset(f"{part.name}-test", "exam", part.source, problems)


def frozen_day(night: Night, start: Path) -> Artifact:
    """Freeze the journal into tables of lessons. `start`: the checkpoint that the night begins with.

    If an earlier night trained `start`, a generated day is reduced to picks and to solutions of joined levels.
    """
    config = night.config
    return night.run(
        freeze_journal,
        "freeze_journal",
        day=config.day,
        levels=practised_levels(config.benchmarks),
        joined_levels=joined_levels(config, night.home, night.date),
        seed=str(config.seed),
        start=start,
        unseen_share=config.unseen_share,
    )


def reward_model_of(night: Night, day: Artifact, champion: Path, tracking: Tracking) -> Artifact:
    """Return the stage that fitted the reward model, or that recorded why no model is usable.

    Logs the fit's metrics to MLflow and, if the model is usable, its digest as the tag `reward_model`. If weights
    cannot be loaded, memory is short or the trainer keeps dying, no model is fitted, not even when the night resumes.
    Raises DamagedCheckpointError if the model's weights have changed.
    """
    config, path = night.config, "fit_reward_model"
    known = committed(night.folder / path)  # a failure recorded earlier tonight is final
    arguments: dict[str, Any] = {
        "day": day,
        "checkpoint": champion,
        "config": config.reward_model if config.wants_reward_model else None,
        "broke": known and known.read_json("outcome.json").get("broke"),
    }
    try:
        fitted = night.run(fit_reward_model, path, **arguments)
    except (WorkerDiedError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # a disk error would fail the next stage too
            raise
        log.warning("no reward model could be fitted", exc_info=error)
        arguments["broke"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        fitted = night.run(fit_reward_model, path, **arguments)
    outcome = fitted.read_json("outcome.json")
    tracking.log(figures(outcome), 0)
    if outcome["serves"]:
        verify(night.checkpoint(fitted), CHANGED)
        tracking.tag(reward_model=outcome["checkpoint"])
    tracking.log_artifact(fitted.folder / "outcome.json", "reward_model")
    return fitted


def champion_of(night: Night, tracking: Tracking) -> Path:
    """Return tonight's champion: the checkpoint that serves by day, or, on the first night, the configured student.

    A resumed night keeps its champion. Raises DamagedCheckpointError if the champion has changed, and InputError if the
    champion is an adapter although this night merges its adapters.
    """
    note = night.folder / "champion.txt"
    if not note.exists():
        serving = Registry(tracking.client, night.config.name).named(DAYTIME)
        write_atomically(note, serving.digest if serving else _enrolled(night).name)
    champion = inside(night.home.checkpoints, note.read_text())
    remedy = DAMAGED_CHAMPION.format(config=night.folder / "config.yaml")
    verify(champion, remedy)
    if is_adapter(champion):
        verify(base_of(champion), remedy)
    if is_adapter(champion) and night.config.merges:
        raise InputError(
            f"lora.keep: the champion {champion.name} is an adapter of {base_of(champion).name}, which rounds of other "
            "adapters cannot begin with; set lora.keep: true"
        )
    return champion


def start_of(night: Night, champion: Path) -> tuple[Path, int]:
    """Return the checkpoint to start from, and the number of consecutive unpromoted nights that led to it.

    With `start_from: latest`, this is the last finished night's candidate if that night chose it as the next start, the
    champion is still the same, the candidate is intact, and all that it has learned is still in the journal. Otherwise,
    this is the champion. A resumed night keeps its start. Raises DamagedCheckpointError if the start has changed.
    """
    note = night.folder / START
    if not note.exists():
        digest, unpromoted = _chosen_start(night, champion) or (champion.name, 0)
        write_atomically(note, json.dumps({"digest": digest, "unpromoted": unpromoted}))
    start = json.loads(note.read_text())
    if start["digest"] == champion.name:
        return champion, 0
    verify(checkpoint := night.home.checkpoints / start["digest"], CHANGED)
    return checkpoint, start["unpromoted"]


def _chosen_start(night: Night, champion: Path) -> tuple[str, int] | None:
    """Return the last candidate's digest and number of unpromoted nights, or None if the champion is the start."""
    last = last_finished(night.home.nights, night.config.name, night.date)
    if night.config.start_from != "latest" or last is None:
        return None
    summary = json.loads((last / SUMMARY).read_text())
    unpromoted, digests = summary.get("unpromoted", 0), summary["digests"]
    candidate = night.home.checkpoints / digests["candidate"]
    if not unpromoted or digests["champion"] != champion.name or not is_intact(candidate):
        return None
    if is_adapter(candidate) and night.config.merges:  # rounds must begin with a full model
        return None
    own = {name for name in learned(candidate) - learned(champion) if not name.startswith(GENERATED)}
    return None if own - lessons_in(night.home.journal, night.date) else (candidate.name, unpromoted)


def teacher_of(night: Night, student: Path) -> Path | None:
    """Return the folder of the teacher for on-policy distillation, or None if the night has none."""
    config = night.config
    if config.on_policy is None or all(step.kind != "grpo" for step in config.steps):
        return None
    teacher = config.on_policy
    if teacher.teacher == STARTER_MODEL:
        unpacked = _enrolled(night, "enroll_teacher", StudentConfig(source=STARTER_MODEL))
        teacher = teacher.model_copy(update={"teacher": str(unpacked)})
    return find_teacher(teacher, student, config.student.trust_remote_code)


def _enrolled(night: Night, path: str = "enroll", student: StudentConfig | None = None) -> Path:
    return night.make_checkpoint(enroll, path, student=student or night.config.student)
