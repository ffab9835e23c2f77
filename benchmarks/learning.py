"""Reward against learning time on the starter's Arithmetic: variants of the night.

    python -m benchmarks.learning [--minutes 10] [--seeds 1 2 3] [--variants …]

All runs start with the same student: the starter after the night's lessons. The reward is greedy accuracy on the exam's
868 problems (levels 1 and 2), which training never draws. It is measured after the run, for the checkpoint at each
quarter of the time. Neither these measurements nor the start of engine and trainer count as learning time. Each
finished run is a line in docs/learning.jsonl and is not run again. Writes docs/learning.png and the table in
docs/performance.md. If `--seeds` names no seed, just these are written.
"""

import itertools
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs.options import options
from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import starter
from benchmarks.nights.learning_runs import (
    NIGHTS,
    TEACHER,
    TEACHERS_SEED,
    WITH_TEACHER,
    Point,
    accuracies,
    distilled,
    learn,
)
from benchmarks.outputs.page import fill, joined, markdown, picture
from benchmarks.outputs.power import mean_difference
from benchmarks.outputs.records import Run, sweep
from flows import environment

RESULTS, PICTURE = (Path("docs/learning").with_suffix(kind) for kind in (".jsonl", ".png"))
PAGE, NAME = Path("docs/performance.md"), "benchmarks.learning"
WORK = SCHOOL / "benchmarks" / "learning"
EARLIER = (  # rows of earlier recipes and of trials, which only their commits can run, some of them by other names
    *("temperature 1.3", "falling rate", "4e-5, falling", "1e-5, three rounds", "5e-6, three rounds"),
    *("2e-5, rounded to nearest", "2e-5, rounded stochastically", "1e-5, rounded stochastically"),
)
VARIANTS = (*EARLIER[:1], *NIGHTS, *EARLIER[1:])  # others are compared with the first of the same minutes


def main() -> None:
    """Do the missing runs, then draw the picture and write the table."""
    given = options(__doc__, {"--minutes": 10.0, "--seeds": [1, 2, 3], "--variants": NIGHTS})
    environment.prepare()
    if runs := sweep(RESULTS, run, variant=given.variants, seed=given.seeds, minutes=[given.minutes]):
        draw(runs)
        fill(PAGE, NAME, f"{table(runs)}\n\n![Share solved]({PICTURE.name})")


def run(variant: str, seed: int, minutes: float) -> Run:
    """Learn for some time. Returns the share solved along the way."""
    home = make(WORK).resolve()
    student, teacher = distilled(starter(), seed, home / f"distilled-{seed}"), home / "teacher"
    if variant in WITH_TEACHER:
        distilled(starter(), TEACHERS_SEED, teacher, TEACHER)
    with tempfile.TemporaryDirectory(dir=WORK) as work:
        folder = Path(work).resolve()
        points = learn(variant, student, teacher, seed, minutes * 60, folder)
        asked = at_quarters(points)
        solved = accuracies([checkpoint for _, checkpoint in asked])
    curve = [[seconds, share] for (seconds, _), share in zip(asked, solved, strict=True)]
    return {"curve": curve, "steps": len(points) - 1}


def at_quarters(points: Sequence[Point]) -> list[Point]:
    """Return the first point, the last, and the points nearest to a quarter, half and three quarters of the time."""
    end = points[-1][0]
    nearest = {min(points, key=lambda point: abs(point[0] - end * quarter / 4)) for quarter in range(5)}
    return sorted(nearest)


def at(curve: Sequence[Sequence[float]], seconds: float) -> float:
    """Return the accuracy at a time by linear interpolation, or the last point's accuracy for later times."""
    for (before, low), (after, high) in itertools.pairwise(curve):
        if before <= seconds <= after:
            return low + (high - low) * (seconds - before) / (after - before)
    return curve[-1][1]


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: each variant's accuracy at the start and at the end, by seed.

    *Against the first* is the mean difference of the ends from the first variant's with the same seeds, and its 95 % t
    interval.
    """
    return markdown("minutes | variant | start | end, by seed | steps | against the first", _rows(runs))


def _rows(runs: Sequence[Run]) -> Iterator[list[Any]]:
    for minutes, variants in by_variant(runs).items():
        first = ends(next(iter(variants.values())), minutes * 60)
        for variant, found in variants.items():
            start = statistics.mean(one["curve"][0][1] for one in found)
            last, steps = ends(found, minutes * 60), statistics.mean(one["steps"] for one in found)
            yield [f"{minutes:g}", variant, f"{start:.3f}", joined(last.values()), f"{steps:.0f}", gain(last, first)]


def by_variant(runs: Sequence[Run]) -> dict[float, dict[str, list[Run]]]:
    """Return the runs by minutes and variant, in the order of `VARIANTS` and of the seeds."""
    found: dict[float, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(runs, key=lambda one: (one["minutes"], VARIANTS.index(one["variant"]), one["seed"])):
        found[one["minutes"]][one["variant"]].append(one)
    return found


def ends(runs: Sequence[Run], seconds: float) -> dict[int, float]:
    """Return each seed's accuracy when its time was over."""
    return {one["seed"]: at(one["curve"], seconds) for one in runs}


def gain(last: Mapping[int, float], first: Mapping[int, float]) -> str:
    """Return the mean difference of two variants over the seeds of both, with its interval from two seeds on."""
    return mean_difference([last[seed] - first[seed] for seed in last if seed in first] if last != first else [])


def draw(runs: Sequence[Run]) -> None:
    """Plot each variant's seeds as thin lines, and their mean as a thick one; a panel for each number of minutes."""
    panels = by_variant(runs)
    with picture(PICTURE, 7.5, 4.5, len(panels), squeeze=False) as panel:
        for axes, (minutes, variants) in zip(panel[0], panels.items(), strict=True):
            grid = np.linspace(0, minutes * 60, 61)
            for place, (variant, found) in enumerate(variants.items()):
                for one in found:
                    axes.plot(*zip(*one["curve"], strict=True), color=f"C{place}", alpha=0.45, lw=1)
                mean = [statistics.mean(at(one["curve"], time) for one in found) for time in grid]
                axes.plot(grid, mean, color=f"C{place}", lw=2, label=variant)
            axes.set(xlabel="seconds of learning", ylabel="solved of the exam's levels 1 and 2")
            axes.set_xlim(0, minutes * 60)


if __name__ == "__main__":
    main()
