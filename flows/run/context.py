"""A night under way, with its folder, configuration and child processes."""

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from prefect import Task

from conf.load import differences, frozen_yaml, identity, load_night
from conf.schema import NightConfig
from conf.sections.benchmark import ExamPart
from conf.storage.durable import make_folder, sync, write_atomically
from conf.storage.home import Home, InputError, inside
from conf.storage.layout import round_path
from conf.storage.log import log
from flows.run.budget import LATE, end_of_asking
from flows.run.dates import Hours
from flows.run.edges import Edges
from flows.run.history import STARTED, first_start, note_progress, resume_command
from models.engine.environment import engine_environment, trainer_environment
from models.hf.checkpoint import verify
from rewards.data.benchmarks import exam_problems
from rewards.verifier import Problem
from tasks.monitoring import incidents
from tasks.registry.promote import NO_PROMOTE
from tasks.rollouts.verified import Player
from tasks.stage import Artifact, Stage, committed, run_name
from tasks.training import trainer_process
from tasks.training.update import merge
from tasks.workers import engine_process
from tasks.workers.cluster import Cluster
from tasks.workers.worker import HoursOverError, R, Worker, WorkerDiedError

CHANGED = "the night cannot go on from files that changed; start it over with --fresh"


@dataclass
class Night:
    """A night under way, with its hours, its child processes and its results so far."""

    home: Home
    date: str
    config: NightConfig
    engine: Worker = field(init=False)
    trainer: Worker = field(init=False)
    hours: Hours = field(init=False)
    edges: Edges = field(default_factory=Edges, init=False)

    def __post_init__(self) -> None:
        logs = self.folder / "logs"
        address = self.config.cluster.address
        kept: Any = ("engine", engine_environment(), logs / "engine.log", self.note)
        self.engine = Cluster(address, self.folder, *kept) if address else Worker(*kept)
        self.trainer = Worker("trainer", trainer_environment(), logs / "trainer.log", self.note)
        self.hours = Hours.of(self.config, self.date, first_start(self.folder))
        self.limit_workers(before_end=-LATE)

    @property
    def folder(self) -> Path:
        """The night's folder: nights/<date> under the home."""
        return self.home.night(self.date)

    @cached_property
    def exam(self) -> dict[ExamPart, list[Problem]]:
        """The exam's problems."""
        return {part: exam_problems(part, self.config.sandbox) for part in self.config.exam.parts}

    @cached_property
    def exam_questions(self) -> tuple[str, ...]:
        """The exam's questions, which no stage may teach or practise."""
        return tuple(sorted({problem.question for problems in self.exam.values() for problem in problems}))

    def round_folder(self, number: int) -> Path:
        """Return the folder of a round."""
        return self.folder / round_path(number)

    def checkpoint(self, artifact: Artifact) -> Path:
        """Return the path of the checkpoint that a stage recorded."""
        return inside(self.home.checkpoints, (artifact.folder / "checkpoint.txt").read_text())

    def player(self, checkpoint: Path, max_tokens: int, temperature: float = 0.0) -> Player:
        """Return a checkpoint as a player in the night's engine."""
        return Player(checkpoint, self.config.student, self.config.sampler, self.engine, max_tokens, temperature)

    def run(
        self, stage: Stage, path: str, *, after: Sequence[Any] = (), silent: bool = False, **arguments: Any
    ) -> Artifact:
        """Run a stage, or return its result if it is already committed.

        `arguments`: the stage's, except for those that the night's stages share (see `_shared`). `after`: other results
        that the stage depends on. `silent`: don't announce the stage, as it runs beside others.

        Before a stage with a trainer, the engine is put to sleep, because on a GPU the two share its memory.
        """
        if "trainer" in stage.parameters:
            self.sleep_engine()
        with nullcontext() if silent else self.announced(path):
            arguments = self._shared(stage) | arguments
            upstream = self.edges.upstream(arguments.values(), after)
            return self.edges.add(stage(self.folder, path, wait_for=upstream, **arguments))

    def committed(self, stage: Stage, path: str, **arguments: Any) -> Artifact | None:
        """Return what a stage has committed from these arguments, which are those of `run`, or None."""
        return stage.committed(self.folder, path, **self._shared(stage) | arguments)

    def _shared(self, stage: Stage) -> dict[str, Any]:
        """Return the arguments that each stage of the night with a parameter of such a name gets, unless `run` differs.

        They are the night's child processes, folders, date and hours, and the settings and questions that many stages
        need.
        """
        config, home, grpo = self.config, self.home, self.config.grpo
        shared: dict[str, Any] = {
            "engine": self.engine,
            "trainer": self.trainer,
            "checkpoints": home.checkpoints,
            "exams": home.exams,
            "journal": home.journal,
            "cache": home.teacher,
            "date": self.date,
            "until": end_of_asking(self.hours),
            "student": config.student,
            "sandbox": config.sandbox,
            "trainer_config": config.trainer,
            "sources": config.benchmarks,
            "benchmarks": config.benchmarks,
            "grpo": grpo,
            "reward": config.reward,
            "max_prompt_tokens": config.engine.max_model_len - grpo.max_completion_tokens,
        }
        if "exam_questions" in stage.parameters:  # they may take long to load
            shared["exam_questions"] = self.exam_questions
        return {name: value for name, value in shared.items() if name in stage.parameters}

    @contextmanager
    def announced(self, path: str) -> Iterator[None]:
        """Log when a stage begins and ends, and record both for `nightschool status`."""
        stage, started = run_name(path), time.perf_counter()
        log.info("%s begins", stage, extra={"stage": stage, "seconds": None})
        note_progress(self.folder, stage, done=False)
        yield
        seconds = time.perf_counter() - started
        log.info("%s: %.1f s", stage, seconds, extra={"stage": stage, "seconds": seconds})
        note_progress(self.folder, stage, done=True)

    def call(self, task: Task[..., R], path: str, *arguments: Any, after: Sequence[Any] = ()) -> R:
        """Run a Prefect task that, unlike a stage, commits no folder."""
        call: Any = task.with_options(task_run_name=run_name(path))
        return self.edges.add(call(*arguments, wait_for=self.edges.upstream(arguments, after)))

    def make_checkpoint(self, stage: Stage, path: str, **arguments: Any) -> Path:
        """Run a stage and return its checkpoint's path. Raises NightError if a committed checkpoint has changed."""
        known = committed(self.folder / path) is not None
        made = self.run(stage, path, **arguments)
        checkpoint = self.checkpoint(made)
        self.edges.add(made, checkpoint)
        if known:
            verify(checkpoint, CHANGED)
        return checkpoint

    def merge(self, path: str, adapter: Path) -> Path:
        """Merge an adapter into its base model. Returns the merged checkpoint."""
        trust = self.config.student.trust_remote_code
        return self.make_checkpoint(merge, path, adapter=adapter, trust_remote_code=trust)

    def prepare_workers(self) -> None:
        """Have the child processes import their libraries in the background while the night starts."""
        self.engine.submit(engine_process.prepare)
        self.trainer.submit(trainer_process.prepare)

    def sleep_engine(self) -> None:
        """Put the engine to sleep so that the trainer can use the GPU.

        If the engine dies during this call, its memory is free anyway, and the next use of the engine restarts it. If
        the night's hours are over, it stays awake: nothing that needs its memory begins before the exam.
        """
        if self.engine.running:
            with suppress(WorkerDiedError, HoursOverError):
                self.engine.call(engine_process.sleep)

    def limit_workers(self, before_end: float) -> None:
        """Set the child processes' time limit to `before_end` seconds before the end of the night's hours.

        If the hours are over already (the night was resumed, or the machine slept), they count as ending now: there
        are no further rounds, but still an exam.
        """
        self.engine.until = self.trainer.until = max(self.hours.end, time.time()) - before_end

    def note(self, incident: str) -> None:
        """Record an incident for the report."""
        incidents.note(self.folder, incident)

    def close(self, grace: float = 5.0) -> None:
        """Shut down the child processes. Each may take `grace` seconds to finish its work."""
        self.engine.end(grace)
        self.trainer.end(grace)


def is_begun(folder: Path) -> bool:
    """Return whether the night in this folder has begun, that is, whether its configuration has been frozen."""
    return (folder / "config.yaml").exists()


def check_identity(folder: Path, config: NightConfig) -> None:
    """Raise InputError if the night in this folder was begun with a different configuration."""
    file = folder / "config.yaml"
    if is_begun(folder) and identity(before := load_night(file)) != identity(config):
        if before.name != config.name:
            other = "use an earlier --date, or another home (NIGHTSCHOOL_HOME)"
            raise InputError(f"{folder.name} already has a night of {before.name!r}; {other}")
        changed = "; ".join(differences(before, config)[:3])
        raise InputError(
            f"the night {folder.name} was begun with another configuration ({changed}): "
            f"resume it with `{resume_command(folder)}`, name another --date, or start it over with --fresh"
        )


def freeze_config(folder: Path, config: NightConfig, fresh: bool, no_promote: bool = False) -> None:
    """Freeze a night's configuration when the night begins. With `fresh`, delete the night's folder first.

    `no_promote` is recorded before the night counts as begun, so that a resumed run moves no alias either.

    Raises InputError if the night was begun with a different configuration.
    """
    gone = folder.with_name(f"{folder.name}.gone")  # renamed first: a half-deleted night must not count as begun
    if gone.exists():
        shutil.rmtree(gone)
    if fresh and folder.exists():
        folder.rename(gone)
        sync(folder.parent)
        shutil.rmtree(gone)
    check_identity(folder, config)
    if no_promote:
        make_folder(folder)
        write_atomically(folder / NO_PROMOTE, "")
    if not is_begun(folder):
        make_folder(folder)
        write_atomically(folder / STARTED, json.dumps({"started": time.time()}))
        write_atomically(folder / "config.yaml", frozen_yaml(config))
