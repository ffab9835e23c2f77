"""How many steps of a lesson of worked solutions fit into its share of the night's hours."""

import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from conf.sections.lessons import DistillConfig
from conf.storage.durable import write_atomically

TIMED = 2  # steps before the number is fixed; a lesson has at least so many
POLL = 0.05  # seconds


@dataclass(frozen=True)
class Pace:
    """A lesson's share of the night's hours, and the file that keeps its number of steps.

    `seconds`: of all steps together, without the loading of the weights and the writing of the checkpoint. `file`:
    outside of the stage's folder, which an attempt after an interruption empties. `decides`: whether this process
    times the steps and writes the file; processes that train together with another one wait for it.
    """

    seconds: float
    file: Path
    decides: bool = True

    def left(self, started: float) -> "Pace":
        """Return the share that is left for the steps of a lesson that `started` then (`time.perf_counter`)."""
        return replace(self, seconds=max(0.0, self.seconds - (time.perf_counter() - started)))


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
    while (known := read_steps(pace.file)) is None or known.planned != planned:
        if pace.decides:
            fitting = max(TIMED, math.floor(pace.seconds / max(seconds_a_step, 1e-9)))
            known = FixedSteps(planned, min(planned, fitting), seconds_a_step)
            pace.file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(pace.file, json.dumps(asdict(known)))
            return known
        time.sleep(POLL)
    return known


def read_steps(file: Path) -> FixedSteps | None:
    """Return what `fix_steps` wrote; None where there is nothing yet."""
    return FixedSteps(**json.loads(file.read_text())) if file.exists() else None


def plan_steps(examples: int, config: DistillConfig, seed: int) -> list[list[int]]:
    """Return the examples of each planned step, by their numbers: shuffled, all before any comes again.

    No example comes more than `max_epochs` times, so few examples give fewer steps; steps differ by at most one
    example in size.
    """
    if not examples:
        return []
    total = min(config.steps * config.batch_size, config.max_epochs * examples)
    steps, rng = -(-total // config.batch_size), random.Random(seed)
    order = [number for _ in range(-(-total // examples)) for number in rng.sample(range(examples), examples)]
    return [order[total * step // steps : total * (step + 1) // steps] for step in range(steps)]


def came(examples: int, config: DistillConfig, seed: int, steps: int) -> set[int]:
    """Return the numbers of the examples that come in a lesson's first `steps` steps."""
    plan: Sequence[Sequence[int]] = plan_steps(examples, config, seed)[:steps]
    return {number for batch in plan for number in batch}
