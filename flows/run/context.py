"""A night under way: its folder, its configuration, its child processes."""

import json
import logging
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conf.load import differences, frozen_yaml, identity, load_night
from conf.schema import NightConfig
from conf.storage.durable import make_folder, sync, write_atomically
from conf.storage.home import LAYOUT, Home, InputError, inside
from flows.run.budget import LATE, Hours
from flows.run.history import last_finished, usual_seconds
from flows.run.progress import note_progress
from models.checkpoint import is_whole
from models.engine.environment import engine_environment, trainer_environment
from tasks import incidents
from tasks.layout import place_of
from tasks.registry.promote import DRY_RUN
from tasks.rollouts import engine_process as engine
from tasks.stage import Artifact, Stage, committed, run_name, uncommit
from tasks.workers import Worker, WorkerDiedError

SITTERS = 3  # champion, student after distillation, candidate: each sits the exam, and ranks the held-out picks
IN_VAULT = 2  # the oldest ancestor, and who serves from then on
log = logging.getLogger("nightschool")


@dataclass
class Night:
    """What the flow carries from stage to stage."""

    home: Home
    date: str
    config: NightConfig
    since: float | None = None  # from when on its budget counts, in seconds since the epoch; None: now
    engine: Worker = field(init=False)
    trainer: Worker = field(init=False)
    hours: Hours = field(init=False)
    started: float = field(init=False)  # seconds since the epoch
    exams: float = field(init=False)  # seconds that exams and rankings of picks usually take; 0 where no night has told

    def __post_init__(self) -> None:
        logs = self.folder / "logs"
        in_engine = engine_environment(self.config.engine.kv_cache_gb)
        usual = usual_seconds(last_finished(self.home.nights, self.config.name))
        exams = SITTERS + (IN_VAULT if self.config.exam.vault else 0)
        self.exams = exams * usual.get("evaluate", 0.0) + SITTERS * usual.get("rank_picks", 0.0)
        self.engine = Worker("engine", in_engine, logs / "engine.log", self.note, usual=usual)
        self.trainer = Worker("trainer", trainer_environment(), logs / "trainer.log", self.note, usual=usual)
        self.hours, self.started = Hours.of(self.config, self.date, self.since), time.time()
        self.spare(-LATE)

    @property
    def folder(self) -> Path:
        """nights/<date> under the home."""
        return self.home.night(self.date)

    def round(self, number: int) -> Path:
        """The folder of a round."""
        return self.folder / place_of(number)

    def checkpoint(self, artifact: Artifact) -> Path:
        """The checkpoint that a stage noted."""
        return inside(self.home.checkpoints, (artifact.folder / "checkpoint.txt").read_text())

    def run(self, stage: Stage, place: str, **arguments: Any) -> Artifact:
        """Runs a stage at a place in the night's folder, and tells how long it took."""
        started = time.perf_counter()
        self.tell(run_name(place), None)
        artifact = stage(self.folder, place, **arguments)
        self.tell(run_name(place), time.perf_counter() - started)
        return artifact

    def made(self, stage: Stage, place: str, **arguments: Any) -> Path:
        """Runs a stage that makes a checkpoint, and once more where that was damaged since. Returns the checkpoint."""
        checkpoint = self.checkpoint(self.run(stage, place, **arguments))
        if not is_whole(checkpoint):
            log.warning("%s was damaged since it was made: it is made again", checkpoint)
            uncommit(self.folder / place)
            checkpoint = self.checkpoint(self.run(stage, place, **arguments))
        return checkpoint

    def taught(self, lesson: Stage, place: str, checkpoint: Path, exam_questions: tuple[str, ...], **own: Any) -> Path:
        """A lesson's checkpoint, made from the one before it; the same one where there was nothing to learn.

        `exam_questions`: those that no lesson may learn. `own`: what the stage is given besides.
        """
        return self.made(
            lesson,
            place,
            checkpoint=checkpoint,
            trainer_config=self.config.trainer,
            student=self.config.student,
            exam_questions=exam_questions,
            max_tokens=self.config.engine.max_model_len,
            checkpoints=self.home.checkpoints,
            trainer=self.trainer,
            **own,
        )

    def has(self, place: str) -> bool:
        """Whether a stage that makes a checkpoint stands at a place, and the checkpoint is whole."""
        known = committed(self.folder / place)
        return known is not None and is_whole(self.checkpoint(known))

    def rest_engine(self) -> None:
        """Leaves the GPU to the trainer. An engine that dies of it holds nothing any more: the next call starts it."""
        if self.engine.running:
            with suppress(WorkerDiedError):
                self.engine.call(engine.sleep)

    def spare(self, seconds: float) -> None:
        """From now on no child is waited for longer than until so many seconds before the end of the night's hours.

        A night that goes on after its hours has none for further rounds, and its exam is waited for all the same.
        """
        self.engine.until = self.trainer.until = max(self.hours.end, self.started) - seconds

    def note(self, what: str) -> None:
        """Keeps an incident, for the report."""
        incidents.note(self.folder, what)

    def tell(self, what: str, seconds: float | None) -> None:
        """Logs and notes that a stage begins (`seconds` None) or is done; whoever shows progress reads the two."""
        message = f"{what} begins" if seconds is None else f"{what}: {seconds:.1f} s"
        log.info(message, extra={"stage": what, "seconds": seconds})
        note_progress(self.folder, what, seconds is not None)

    def close(self, grace: float = 5.0) -> None:
        """Ends the child processes for good; `grace` seconds are left to each to finish what it does."""
        self.engine.end(grace)
        self.trainer.end(grace)


def settle_layout(home: Home) -> None:
    """Notes on a home which version of the program it is laid out for (see `Home.here`)."""
    if not home.layout_file.exists():
        write_atomically(home.layout_file, json.dumps({"version": LAYOUT}) + "\n")


def is_begun(folder: Path) -> bool:
    """Whether the night of this folder has begun: its configuration is frozen."""
    return (folder / "config.yaml").exists()


def check_identity(folder: Path, config: NightConfig) -> None:
    """Raises InputError where the night of this folder was begun with another configuration."""
    file = folder / "config.yaml"
    if is_begun(folder) and identity(before := load_night(file)) != identity(config):
        changed = "; ".join(differences(before, config)[:3])
        raise InputError(
            f"the night {folder.name} was begun with another configuration ({changed}): "
            "go on with that one, name another --date, or begin it anew with --fresh"
        )


def is_dry(folder: Path) -> bool:
    """Whether the night was begun with `--dry-run`."""
    return (folder / DRY_RUN).exists()


def freeze_config(folder: Path, config: NightConfig, fresh: bool, dry_run: bool = False) -> None:
    """Freezes the night's configuration at its start; `fresh` throws away what the night has and begins anew.

    A `dry_run` is noted before the night counts as begun: whoever goes on with it, moves no alias either.

    Raises InputError where the night was begun with another configuration.
    """
    gone = folder.with_name(f"{folder.name}.gone")  # one rename: what is half thrown away counts for nothing
    if gone.exists():
        shutil.rmtree(gone)
    if fresh and folder.exists():
        folder.rename(gone)
        sync(folder.parent)
        shutil.rmtree(gone)
    check_identity(folder, config)
    if dry_run:
        make_folder(folder)
        write_atomically(folder / DRY_RUN, "")
    if not is_begun(folder):
        make_folder(folder)
        write_atomically(folder / "config.yaml", frozen_yaml(config))
