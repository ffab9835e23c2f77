"""What a starter night costs apart from lessons, answers and updates, measured with a night that has almost none.

The costs are wall-clock seconds by stage, as the night announces stages, and processor seconds by process.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
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


def fixed(home: Path) -> str:
    """Run the smallest possible night in an empty home. Return where its time went, as two Markdown tables."""
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
    stages = by_stage(moments(folder), began, ended)
    done = metrics_of(folder, 1) or {}
    work = sum(done.get(name, 0.0) for name in ("seconds_generate", "seconds_update"))
    stages |= {"of these, answers and update of the round": -work, "**together**": ended - began - work}
    by_role: dict[str, float] = defaultdict(float)
    for process, seconds in used.items():
        by_role[roles[process]] += seconds
    by_process = {**dict(sorted(by_role.items())), "**together**": sum(by_role.values())}
    return "\n\n".join(
        markdown(head, ([name, f"{seconds:.1f}"] for name, seconds in parts.items()))
        for head, parts in (("part | seconds", stages), ("process | processor seconds", by_process))
    )


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
