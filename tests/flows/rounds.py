"""Rounds of a tiny student on the real stages, trainer, Prefect and MLflow, with a script in place of the engine."""

import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.grpo import Rounds
from flows.run.budget import divide
from flows.run.context import Night
from flows.training.lessons import Lessons
from flows.training.quizzes import Quizzes
from flows.training.recipe import Recipe
from flows.training.reward_model import LearnedReward
from models.hf.checkpoint import parent_of
from models.hf.loading import load_tokenizer
from models.rollout import Rollout
from tasks.journal.freeze import LESSONS
from tasks.monitoring.tracking import Tracking
from tasks.stage import Artifact, committed
from tasks.workers import engine_process
from tests.chaos.tiny_engine import Sampler
from tests.rewards.datasets import write_gsm8k
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import InProcessWorker

DATE = "2026-11-20"
SETTINGS = [
    "stages=[grpo]",
    "lessons.quiz_problems=0",
    "distill={steps: 2, batch_size: 2, learning_rate: 0.01}",
    "grpo.rounds=3",
    "grpo.prompts_per_round=4",
    "grpo.group_size=2",
    "grpo.refills=2",
    "grpo.max_completion_tokens=8",
    "grpo.quiz_every_rounds=0",
    "grpo.sampler_ratio_band=[0.0, 1000.0]",  # the script's completions are not the policy's own
    "engine.max_model_len=1000",
    "optimizer.learning_rate=0.01",
]
# How many of each group's two completions are right, call after call of the engine.
SCRIPT = [
    (1, 1, 1, 1),  # round 1: nothing to replace
    (0, 0, 0, 0),  # round 2: no signal at all
    (0, 0, 0, 0),  # its first refill
    (2, 0, 2, 2),  # its second
    (0, 0, 2, 0),  # round 3: all wrong or all right
    (1, 0, 1, 1),
    (2,),  # in place of the one still without signal
]


FIGURES = {"sync": 0.25, "generate": 0.5}  # of each call of the engine, in seconds


class TinyEngine:
    """The policy's own completions, sampled by plain PyTorch. `asked`: the digests of its policies, call by call."""

    running = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if function is engine_process.sample:
            checkpoint, config, prompts, size = arguments
            options.pop("trust_remote_code")
            self.asked.append(checkpoint.name)
            return Sampler(checkpoint, config).sample(prompts, size, **options), FIGURES
        return None

    def close(self) -> None: ...


class ScriptedEngine:
    """An engine that gives as many right answers as its script says, call after call, and wrong ones in exams.

    `examined`: the digests of the exams' checkpoints.
    """

    running = True

    def __init__(self, student: Path, script: Sequence[Sequence[int]]) -> None:
        self.tokenizer: Any = load_tokenizer(student)
        self.script = script
        self.seeds: list[int] = []
        self.asked: list[list[int]] = []  # the numbers in the questions, call by call
        self.examined: list[str] = []

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if function is engine_process.sample:
            return self.sample(*arguments, **options), FIGURES
        return None

    def sample(
        self, checkpoint: Path, config: Any, prompts: list[list[int]], size: int, *, seed: int, **options: Any
    ) -> list[list[Rollout]]:
        if options["temperature"] == 0.0:
            self.examined.append(checkpoint.name)
            return [[rollout(n, 0, prompt, "?", checkpoint.name)] for n, prompt in enumerate(prompts)]
        found = [re.search(r"How many\? (\d+)", self.tokenizer.decode(prompt)) for prompt in prompts]
        numbers = [int(match[1]) for match in found if match]
        right = self.script[len(self.seeds)]
        self.seeds.append(seed)
        self.asked.append(numbers)
        return [
            [
                rollout(group, sample, prompts[group], f"#### {number if sample < solved else -1}", checkpoint.name)
                for sample in range(size)
            ]
            for group, (number, solved) in enumerate(zip(numbers, right, strict=True))
        ]


class SlowEngine(ScriptedEngine):
    """An engine in whose n-th call the clock jumps (see the fixture `clock`)."""

    def __init__(self, student: Path, clock: list[float], call: int, seconds: float) -> None:
        super().__init__(student, SCRIPT)
        self.clock, self.slow_call, self.slow_seconds = clock, call, seconds

    def sample(self, *arguments: Any, **options: Any) -> Any:
        if len(self.seeds) + 1 == self.slow_call:
            self.clock[0] += self.slow_seconds
        return super().sample(*arguments, **options)


def rollout(group: int, sample: int, prompt: list[int], text: str, digest: str) -> Rollout:
    tokens = [2 + (7 * group + sample) % 90, 5 + sample, 1]
    return Rollout("", group, sample, prompt, tokens, [-4.5] * 3, [True] * 3, "stop", text, digest)


@dataclass
class School:
    """Several nights that share a student, problems, and the trainer's process."""

    root: Path
    database: Path
    student: Path
    trainer: InProcessWorker

    def home(self, name: str) -> Home:
        """Return the home of this name, with the student in it."""
        home = Home(self.root / name)
        if not home.root.exists():
            home.checkpoints.mkdir(parents=True)
            shutil.copy(self.database, home.database_file)
            shutil.copytree(self.student, home.checkpoints / self.student.name)
        return home

    def study(self, name: str, engine: Any, *settings: str, problems: int = 40) -> tuple[Path, Path]:
        """Run or resume all lessons and rounds of a night. Returns its folder and the candidate."""
        night = self.night(name, engine, *settings, problems=problems)
        return night.folder, self.run(night, worked_solutions(night))[0]

    def night(self, name: str, engine: Any, *settings: str, problems: int = 40) -> Night:
        """Return the night of the home of this name."""
        source = write_gsm8k(self.root / f"gsm8k-{problems}", problems)
        config = load_night(STARTER, [*SETTINGS, f"benchmarks=[{{name: gsm8k, source: {source}}}]", *settings])
        night = Night(self.home(name), DATE, config)
        night.engine, night.trainer, night.exam_questions = engine, self.trainer, ()
        self.trainer.until = math.inf  # not that of an earlier night
        night.folder.mkdir(parents=True, exist_ok=True)
        return night

    def run(self, night: Night, day: Artifact, learned: LearnedReward | None = None) -> tuple[Path, Rounds]:
        """Run or resume all lessons and rounds. Returns the candidate and the rounds."""
        tracking = Tracking(night.home, night.config)
        tracking.open_run(night.folder, night.config, {})

        @flow
        def steps() -> tuple[Path, Rounds]:
            champion = night.home.checkpoints / self.student.name
            quizzes = Quizzes(night)
            before = quizzes.ask("start", champion)
            division = divide(night.hours, night.config, night.folder, 100, 0, before)
            lessons = Lessons(night, day, parent_of(champion) is not None)
            recipe = Recipe(night, champion, lessons, quizzes, division)
            rounds = Rounds(night, tracking, set(), division, before, None, learned)
            distilled = recipe.before_rounds()
            return recipe.run(rounds, distilled), rounds

        return steps()


def worked_solutions(night: Night) -> Artifact:
    """Traces without a truth."""
    asked = [json.dumps([{"role": "user", "content": f"How many? {n}"}]) for n in range(4)]
    rows = [{"messages": messages, "response": f"#### {n}", "teacher": "me"} for n, messages in enumerate(asked)]
    tables = {name: (schema, rows if name == "traces" else []) for name, schema in LESSONS.items()}
    counts = {name: {"new": 0, "replayed": 0, "generated": 0} for name in LESSONS}
    return committed(night.folder / "day") or write_stage(night.folder / "day", tables, counts=counts)


def digest(folder: Path, path: str) -> str:
    """Return the checkpoint that a stage of a night made, e.g. `round-01/checkpoint`."""
    return (folder / path / "checkpoint.txt").read_text()
