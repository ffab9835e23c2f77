"""What a starter night costs apart from lessons, answers and updates, measured with a night that has almost none.

The costs are wall-clock seconds by stage, as the night announces stages, and processor seconds by process.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.machine.processes import OTHER, processes
from benchmarks.nights.timed import OF_A_ROUND, Moment, metrics_of, moments, run_night
from benchmarks.outputs.page import markdown

LEAST = [  # without lessons, there are no quizzes of them
    *("budget_minutes=null", "exam.target.problems=8", "exam.guards=[]", "distill.steps=0", "day.generated_traces=0"),
    *("day.generated_preferences=0", "grpo.rounds=1", "grpo.quiz_every_rounds=0", "grpo.prompts_per_round=8"),
    *("grpo.min_useful_groups=1", "grpo.max_completion_tokens=8", "exam.max_completion_tokens=8"),
]
FIRST, BETWEEN, LAST = "before the first stage", "between the stages", "after the last stage"


@dataclass(frozen=True)
class Fixed:
    """Wall-clock seconds by stage, those of the round's answers and update (`work`), and CPU seconds by process."""

    stages: Mapping[str, float]
    work: float
    processes: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The seconds of the whole command without the round's answers and update."""
        return sum(self.stages.values()) - self.work


def fixed(home: Path) -> Fixed:
    """Run the smallest possible night in an empty home, and return where its time went."""
    roles: dict[int, str] = {}
    used: dict[int, float] = {}

    def watch(_: Path) -> bool:
        for role, process in processes():
            with suppress(psutil.Error):  # it has just ended
                spent = process.cpu_times()
                used[process.pid] = spent.user + spent.system
                if role != OTHER or process.pid not in roles:
                    roles[process.pid] = role
        return False

    began = time.time()
    folder = run_night(home, LEAST, until=watch)
    ended = time.time()
    done = metrics_of(folder, 1) or {}
    by_role: dict[str, float] = defaultdict(float)
    for process, seconds in used.items():
        by_role[roles[process]] += seconds
    work = sum(done.get(name, 0.0) for name in ("seconds_generate", "seconds_update"))
    return Fixed(by_stage(moments(folder), began, ended), work, dict(sorted(by_role.items())))


def by_stage(found: Sequence[Moment], began: float, ended: float) -> dict[str, float]:
    """Return the seconds of each stage in order (a round's stages as one), and of the time outside the stages.

    These add up to the time from `began` to `ended` (seconds since the epoch).
    """
    seconds: dict[str, float] = defaultdict(float)
    at, where = began, FIRST
    for moment in found:
        seconds[where] += moment.at - at
        place = OF_A_ROUND.fullmatch(moment.stage)
        name = f"round {place[1]}" if place else moment.stage
        at, where = moment.at, BETWEEN if moment.done else name
    seconds[LAST] = ended - at
    return dict(seconds)


def page(found: Fixed) -> str:
    """Return the seconds by stage and by process as two Markdown tables."""
    stages = {**found.stages, "of these, answers and update of the round": -found.work, "**together**": found.seconds}
    used = {**found.processes, "**together**": sum(found.processes.values())}
    tables = {"part | seconds": stages, "process | processor seconds": used}
    return "\n\n".join(
        markdown(head, ([name, f"{seconds:.1f}"] for name, seconds in lines.items())) for head, lines in tables.items()
    )
