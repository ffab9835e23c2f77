"""The steps of a lesson: which examples each takes, and how many fit into the lesson's share of the night's hours."""

import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from conf.sections.lessons import DistillConfig, LessonConfig
from conf.storage.durable import read_json, write_atomically

T = TypeVar("T")
TIMED = 2  # steps before the number is fixed; a lesson has at least so many
MOST_STEPS = 48  # a night, of one of the owner's channels: what has no room tonight is taught tomorrow


@dataclass(frozen=True)
class Pace:
    """A lesson's share of the night's hours, and the file that keeps its number of steps.

    `seconds`: of all steps together, without the loading of the weights and the writing of the checkpoint. `file`:
    outside of the stage's folder, which an attempt after an interruption empties.
    """

    seconds: float
    file: Path

    def left(self, started: float) -> "Pace":
        """Return the share that is left for the steps of a lesson that `started` then (`time.perf_counter`)."""
        return replace(self, seconds=max(0.0, self.seconds - (time.perf_counter() - started)))

    def share(self, of: int, name: str) -> "Pace":
        """Return an even share for one of so many lessons that take turns, with a file of its own."""
        return replace(self, seconds=self.seconds / of, file=self.file.with_suffix("") / f"{name}.json")


@dataclass(frozen=True)
class FixedSteps:
    """The number of steps that a lesson takes, of how many that were planned, and the seconds of one."""

    planned: int
    steps: int
    seconds_a_step: float

    @property
    def sentence(self) -> str:
        """The same for people."""
        return f"{self.steps} of {self.planned} steps: this machine needs {self.seconds_a_step:.1f} s a step"


def fix_steps(pace: Pace, planned: int, seconds_a_step: float) -> FixedSteps:
    """Fix a lesson's number of steps and write it down, unless its file has it already.

    The number is that of the planned steps that fit into the lesson's share of the hours, and at least the two that
    are taken by then. `seconds_a_step`: of the second step alone, because the first one also allocates memory and
    prepares the products of each shape.
    """
    if (known := read_steps(pace.file)) is not None and known.planned == planned:
        return known
    fitting = max(TIMED, math.floor(pace.seconds / max(seconds_a_step, 1e-9)))
    fixed = FixedSteps(planned, min(planned, fitting), seconds_a_step)
    pace.file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(pace.file, json.dumps(asdict(fixed)))
    return fixed


def read_steps(file: Path) -> FixedSteps | None:
    """Return what `fix_steps` wrote; None where there is nothing yet."""
    noted = read_json(file)
    return noted and FixedSteps(**noted)


def paced(steps: Sequence[T], pace: Pace | None) -> Iterator[tuple[int, int, T]]:
    """Yield as many of the planned `steps` as the pace allows: the number (from 0), how many there will be, the step.

    How many is known from the third one on; until then it is the planned number.
    """
    most, began = len(steps), time.perf_counter()
    for number, step in enumerate(steps):
        before, began = began, time.perf_counter()
        if number == TIMED and pace is not None:
            most = fix_steps(pace, len(steps), began - before).steps
        if number == most:
            return
        yield number, most, step


def plan_steps(examples: int, config: DistillConfig | LessonConfig, seed: int) -> list[list[int]]:
    """Return the examples of each planned step, by their numbers: shuffled, all before any comes again.

    Feedback comes once an epoch. Worked solutions come at most `max_epochs` times, so few of them give fewer steps.
    Steps differ by at most one example in size.
    """
    if not examples:
        return []
    if not isinstance(config, DistillConfig):
        return _plan_epochs(examples, config, seed)
    total = min(config.steps * config.batch_size, config.max_epochs * examples)
    steps, rng = -(-total // config.batch_size), random.Random(seed)
    order = [number for _ in range(-(-total // examples)) for number in rng.sample(range(examples), examples)]
    return [order[total * step // steps : total * (step + 1) // steps] for step in range(steps)]


def _plan_epochs(examples: int, config: LessonConfig, seed: int) -> list[list[int]]:
    rng, number = random.Random(seed), -(-examples // config.batch_size)
    orders = [rng.sample(range(examples), examples) for _ in range(config.epochs)]
    return [order[step::number] for order in orders for step in range(number)]


def came(examples: int, config: DistillConfig | LessonConfig, seed: int, steps: int) -> set[int]:
    """Return the numbers of the examples that come in a lesson's first `steps` steps."""
    return {number for batch in plan_steps(examples, config, seed)[:steps] for number in batch}
