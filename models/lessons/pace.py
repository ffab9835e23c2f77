"""The steps of a lesson: which examples each step takes, and how many steps fit into the lesson's time."""

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from conf.sections.lessons import DistillConfig, LessonConfig
from conf.storage.durable import read_json, write_atomically

T = TypeVar("T")
TIMED = 2  # steps taken before the number of steps is fixed, and thus the fewest that it can be
MOST_STEPS = 48  # per night and feedback channel; examples that do not fit tonight are used tomorrow


@dataclass(frozen=True)
class Pace:
    """A lesson's share of the night's time, and the file that records its number of steps.

    `seconds`: the time for all steps together, excluding the time to load the weights and write the checkpoint. `file`
    lies outside the stage's folder, because that folder is emptied when an interrupted stage is retried.
    """

    seconds: float
    file: Path

    def left(self, started: float) -> "Pace":
        """Return what is left of the share for a lesson that began at `started`, a value of `time.perf_counter`."""
        return replace(self, seconds=max(0.0, self.seconds - (time.perf_counter() - started)))

    def within(self, seconds: float) -> "Pace":
        """Return the pace with at most so many seconds."""
        return replace(self, seconds=max(0.0, min(self.seconds, seconds)))

    def share(self, of: int, name: str) -> "Pace":
        """Return the pace of lesson `name`, one of `of` lessons with equal shares of the time. It has its own file."""
        return replace(self, seconds=self.seconds / of, file=self.file.with_suffix("") / f"{name}.json")


@dataclass(frozen=True)
class FixedSteps:
    """How many steps were planned for a lesson, how many it takes, and how many seconds a step needs."""

    planned: int
    steps: int
    seconds_a_step: float

    @property
    def sentence(self) -> str:
        """The numbers as a sentence for the report."""
        if self.steps == self.planned:
            return f"{self.steps} steps, {self.seconds_a_step:.1f} s each"
        return f"{self.steps} of {self.planned} steps: this machine needs {self.seconds_a_step:.1f} s a step"


def fix_steps(pace: Pace, planned: int, seconds_a_step: float) -> FixedSteps:
    """Return a lesson's number of steps from the pace's file, or fix and record it if the file has none for this plan.

    The number is how many of the planned steps fit into the lesson's share of time, but at least the two already taken.
    A recorded number is lowered if the time left, after an interruption, is too short for it. `seconds_a_step`:
    measured on the second step alone, because the first also allocates memory and prepares the matrix products for each
    shape.
    """
    if (known := read_steps(pace.file)) is not None and known.planned == planned:
        seconds_a_step = known.seconds_a_step
        if known.steps <= TIMED or known.steps * seconds_a_step <= pace.seconds:
            return known
    fitting = max(TIMED, math.floor(pace.seconds / max(seconds_a_step, 1e-9)))
    fixed = FixedSteps(planned, min(planned, fitting), seconds_a_step)
    pace.file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(pace.file, json.dumps(asdict(fixed)))
    return fixed


def read_steps(file: Path) -> FixedSteps | None:
    """Return the number of steps that `fix_steps` recorded in the file, or None if there is no record yet."""
    noted = read_json(file)
    return noted and FixedSteps(**noted)


def paced(
    steps: Sequence[T], pace: Pace | None, size: Callable[[T], float] = lambda step: 1.0
) -> Iterator[tuple[int, int, T]]:
    """Yield the planned `steps` that the pace allows, each as (number from 0, total number of steps, step).

    The total is final from the third step on; until then it is the planned number. `size`: the length of a step, such
    as its tokens. The time of the step that is measured counts in proportion to the mean of all steps' sizes.
    """
    most, began = len(steps), time.perf_counter()
    for number, step in enumerate(steps):
        before, began = began, time.perf_counter()
        if number == TIMED and pace is not None:
            usual = fmean(map(size, steps)) / size(steps[number - 1])
            most = fix_steps(pace, len(steps), (began - before) * usual).steps
        if number == most:
            return
        yield number, most, step


def plan_steps(examples: int, config: DistillConfig | LessonConfig, seed: int) -> list[list[int]]:
    """Return the example indices of each planned step, shuffled so that every example is used before any is repeated.

    Feedback examples come once per epoch. Worked solutions (DistillConfig) come at most `max_epochs` times, so a small
    set gives fewer steps. Step sizes differ by at most one example.
    """
    if not examples:
        return []
    rng = random.Random(seed)
    if not isinstance(config, DistillConfig):
        steps = -(-examples // config.batch_size)
        orders = [rng.sample(range(examples), examples) for _ in range(config.epochs)]
        return [order[step::steps] for order in orders for step in range(steps)]
    total = min(config.steps * config.batch_size, config.max_epochs * examples)
    steps = -(-total // config.batch_size)
    order = [number for _ in range(-(-total // examples)) for number in rng.sample(range(examples), examples)]
    return [order[total * step // steps : total * (step + 1) // steps] for step in range(steps)]


def examples_used(examples: int, config: DistillConfig | LessonConfig, seed: int, steps: int) -> set[int]:
    """Return the indices of the examples that a lesson's first `steps` steps use."""
    return {number for batch in plan_steps(examples, config, seed)[:steps] for number in batch}
