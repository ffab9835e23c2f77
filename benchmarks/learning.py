"""Reward against learning time on the starter's Arithmetic: variants of the night.

    python -m benchmarks.learning [--minutes 10] [--seeds 1 2 3] [--variants …]

All runs start with the same student: the starter after the night's lessons. The reward is greedy accuracy on the exam's
868 problems (levels 1 and 2), which training never draws. It is measured after the run, for the checkpoint at each
quarter of the time. Neither these measurements nor the start of engine and trainer count as learning time. Each
finished run is a line in docs/learning.jsonl and is not run again. Writes docs/learning.png and the table in
docs/performance.md. If `--seeds` names no seed, just these are written.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

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
from benchmarks.outputs.records import Run, by, ordered, paired, sweep
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
    times, shares = zip(*curve, strict=True)
    return float(np.interp(seconds, times, shares))


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: each variant's accuracy at the start and at the end, by seed.

    *Against the first* is the mean difference of the ends from the first variant's with the same seeds, and its 95 % t
    interval.
    """
    rows = []
    for (minutes,), of_minutes in by(ordered(runs, minutes=None, variant=VARIANTS, seed=None), "minutes").items():
        first, *others = by(of_minutes, "variant").values()
        for same in (first, *others):
            start, steps = fmean(run["curve"][0][1] for run in same), fmean(run["steps"] for run in same)
            gains = mean_difference([] if same is first else paired(same, first, end))
            ends = joined(map(end, same))
            rows.append([f"{minutes:g}", same[0]["variant"], f"{start:.3f}", ends, f"{steps:.0f}", gains])
    return markdown("minutes | variant | start | end, by seed | steps | against the first", rows)


def end(run: Run) -> float:
    """Return a run's accuracy when its time was over."""
    return at(run["curve"], run["minutes"] * 60)


def draw(runs: Sequence[Run]) -> None:
    """Plot each variant's seeds as thin lines, and their mean as a thick one; a panel for each number of minutes."""
    panels = by(ordered(runs, minutes=None, variant=VARIANTS, seed=None), "minutes")
    with picture(PICTURE, 7.5, 4.5, len(panels), squeeze=False) as panel:
        for axes, ((minutes,), of_minutes) in zip(panel[0], panels.items(), strict=True):
            grid = np.linspace(0, minutes * 60, 61)
            for place, ((variant,), same) in enumerate(by(of_minutes, "variant").items()):
                for run in same:
                    axes.plot(*zip(*run["curve"], strict=True), color=f"C{place}", alpha=0.45, lw=1)
                mean = [fmean(at(run["curve"], time) for run in same) for time in grid]
                axes.plot(grid, mean, color=f"C{place}", lw=2, label=variant)
            axes.set(xlabel="seconds of learning", ylabel="solved of the exam's levels 1 and 2")
            axes.set_xlim(0, minutes * 60)


if __name__ == "__main__":
    main()
