"""Where a starter night's time goes apart from lessons, answers and updates: a night with next to none of them.

Wall-clock seconds by stage, as the night itself announces them, and processor seconds by process: what an idle machine
with enough cores would not shorten.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.nights.timed import OF_A_ROUND, Moment, metrics_of, moments, run_night

LEAST = [  # a whole night with as little to answer and to learn as there can be: no lesson, thus no quiz of it
    *("budget_minutes=null", "exam.target.problems=8", "exam.guards=[]", "distill.steps=0", "day.generated_traces=0"),
    *("day.generated_preferences=0", "grpo.rounds=1", "grpo.quiz_every_rounds=0", "grpo.prompts_per_round=8"),
    *("grpo.min_useful_groups=1", "grpo.max_completion_tokens=8", "exam.max_completion_tokens=8"),
]
FIRST, BETWEEN, LAST = "before the first stage", "between the stages", "after the last stage"
OTHERS = "others"
ROLES = {"sqlite_server": "Prefect's server", "nights.timed": "the command"}  # by what a command line contains


@dataclass(frozen=True)
class Fixed:
    """Wall-clock seconds by stage, those of the round's answers and update, and processor seconds by process."""

    stages: Mapping[str, float]
    work: float
    processes: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The whole command, without the round's answers and update."""
        return sum(self.stages.values()) - self.work


def fixed(home: Path) -> Fixed:
    """Run the least night in an empty home. Returns where its time went."""
    roles: dict[int, str] = {}
    used: dict[int, float] = {}

    def watch(_: Path) -> bool:
        for process in psutil.Process().children(recursive=True):
            try:
                spent, role = process.cpu_times(), _role(process)
            except psutil.Error:  # it has just ended
                continue
            used[process.pid] = spent.user + spent.system
            if role != OTHERS or process.pid not in roles:  # one that begins or ends has no command line
                roles[process.pid] = role
        return False

    began = time.time()
    folder = run_night(home, LEAST, until=watch)
    ended = time.time()
    done = metrics_of(folder, 1) or {}
    processes: dict[str, float] = defaultdict(float)
    for process, seconds in used.items():
        processes[roles[process]] += seconds
    work = sum(done.get(name, 0.0) for name in ("seconds_generate", "seconds_update"))
    return Fixed(by_stage(moments(folder), began, ended), work, dict(sorted(processes.items())))


def by_stage(found: Sequence[Moment], began: float, ended: float) -> dict[str, float]:
    """Return the seconds of each stage in order, of the round together, and of the time outside of stages.

    They add up to the time from `began` to `ended` (seconds since the epoch).
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
    """Return both lists as Markdown."""
    lines = ["| part | seconds |", "|:--|--:|"]
    lines += [f"| {name} | {seconds:.1f} |" for name, seconds in found.stages.items()]
    lines += [f"| of these answers and update of the round | −{found.work:.1f} |"]
    lines += [f"| **together** | **{found.seconds:.1f}** |", "", "| process | processor seconds |", "|:--|--:|"]
    lines += [f"| {name} | {seconds:.1f} |" for name, seconds in found.processes.items()]
    return "\n".join([*lines, f"| **together** | **{sum(found.processes.values()):.1f}** |"])


def _role(process: psutil.Process) -> str:
    command = " ".join(process.cmdline())
    if "multiprocessing.spawn" in command:
        return "the engine" if "VLLM_ENABLE_V1_MULTIPROCESSING" in process.environ() else "the trainer"
    return next((role for mark, role in ROLES.items() if mark in command), OTHERS)
