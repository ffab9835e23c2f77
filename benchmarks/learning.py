"""Reward against learning time on the starter's Arithmetic: variants of the night, and TRL.

    python -m benchmarks.learning [--minutes 2.5] [--seeds 1 2 3] [--variants …] [--plot FILE.png]

All runs start with the same student: the starter after the night's lessons. The reward is greedy accuracy on a fixed
part of the exam, whose problems (levels 1 and 2) training never draws. It is measured after the run, for the checkpoint
at each quarter of the time, and for the mean of the last five checkpoints' weights. Neither these measurements nor the
start of engine and trainer count as learning time. Each finished run is a file under --out and is not run again. Prints
a line of JSON for each run, then a Markdown table.
"""

import argparse
import itertools
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import STARTER, starter
from benchmarks.nights.learning_runs import NIGHTS, TRL, Point, accuracies, distilled, learn, mean_weights
from benchmarks.outputs.page import joined, markdown, picture
from conf.storage.durable import write_atomically
from flows import environment

RESULTS = SCHOOL / "benchmarks" / "learning"
VARIANTS = (*NIGHTS, *TRL)
LAST = 5  # checkpoints whose mean weights are also evaluated


def main() -> None:
    """Do the missing runs, then draw the picture and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.5, help="of learning, per run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--variants", nargs="+", default=VARIANTS, choices=VARIANTS)
    parser.add_argument("--problems", type=int, default=868, help="exam problems per checkpoint")
    parser.add_argument("--student", type=Path, default=STARTER)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--plot", type=Path, help="write the picture to this file")
    options = parser.parse_args()
    environment.prepare()
    starter(options.student)
    make(options.out)
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)  # by variant
    for seed, variant in itertools.product(options.seeds, options.variants):
        runs[variant].append(run(variant, seed, options))
        print(json.dumps(runs[variant][-1]), flush=True)
    if options.plot is not None:
        draw(runs, options.minutes * 60, options.plot)
    print(table(runs, options.minutes * 60))


def run(variant: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return a run's result from its file. If there is none, do the run and write the file first."""
    of_what = f"{options.minutes:g}-minutes-{options.problems}-problems-{options.student.name}"
    name = f"{variant.replace(' ', '-').replace('×', 'x')}-seed-{seed}-{of_what}.json"
    file: Path = options.out / name
    if not file.exists():
        folder = options.out.resolve() / f"distilled-{options.student.name}-{seed}"
        student = distilled(options.student, seed, folder)
        with tempfile.TemporaryDirectory(dir=options.out) as work:
            points = learn(variant, student, seed, options.minutes * 60, Path(work).resolve())
            asked = at_quarters(points)
            last = [checkpoint for _, checkpoint in points[1:]][-LAST:]
            averaged = mean_weights(last, Path(work).resolve() / "mean")
            *solved, mean = accuracies([*(checkpoint for _, checkpoint in asked), averaged], options.problems)
        curve = [[seconds, share] for (seconds, _), share in zip(asked, solved, strict=True)]
        result = {"variant": variant, "seed": seed, "problems": options.problems, "curve": curve, "mean_of_last": mean}
        write_atomically(file, json.dumps(result | {"steps": len(points) - 1}))
    return json.loads(file.read_text())


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


def table(runs: Mapping[str, Sequence[Mapping[str, Any]]], seconds: float) -> str:
    """Return a Markdown table: each variant's mean accuracy over time, and each seed's accuracy at the end."""
    times, rows = [seconds * quarter / 4 for quarter in range(5)], []
    for variant, found in runs.items():
        means = [f"{statistics.mean(at(one['curve'], time) for one in found):.3f}" for time in times]
        ends = joined(at(one["curve"], seconds) for one in found)
        averaged = joined(one["mean_of_last"] for one in found if "mean_of_last" in one)
        rows.append([variant, *means, ends, averaged, f"{statistics.mean(one['steps'] for one in found):.1f}"])
    passed = " | ".join(f"{time:.0f} s" for time in times)
    return markdown(f"variant | {passed} | each seed at the end | mean of the last five | steps", rows)


def draw(runs: Mapping[str, Sequence[Mapping[str, Any]]], seconds: float, file: Path) -> None:
    """Plot each variant's seeds as thin lines, and their mean as a thick one."""
    grid = [seconds * step / 60 for step in range(61)]
    with picture(file, 7.5, 4.5) as axes:
        for place, (variant, found) in enumerate(runs.items()):
            for one in found:
                axes.plot(*zip(*one["curve"], strict=True), color=f"C{place}", alpha=0.45, lw=1)
            mean = [statistics.mean(at(one["curve"], time) for one in found) for time in grid]
            axes.plot(grid, mean, color=f"C{place}", lw=2, label=variant)
        axes.set(xlabel="seconds of learning", ylabel="solved of the exam's levels 1 and 2", xlim=(0, seconds))
        axes.set_ylim(bottom=0)


if __name__ == "__main__":
    main()
