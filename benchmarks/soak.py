"""Memory over a long night: the resident memory of each process in each of many short rounds of the starter model.

    python -m benchmarks.soak --rounds 100 [--plot docs/soak.png] [--json]
    python -m benchmarks.soak --nights 60
    python -m benchmarks.soak --suspend 10

The second command instead runs many nights of a tiny student in one home, and prints time and disk by night. It goes on
where it was interrupted. The third one runs a starter night whose processes all stand still for ten minutes.

Engine, trainer, Prefect server and MLflow are real; only the rounds are small. Resident memory is the kernel's PSS
(/proc/<pid>/smaps_rollup: shared pages are split among their processes), read twice a second; a round's figure is the
median of its readings. The slope, in MB per round, is fitted by least squares to the second half of the rounds, because
the first half includes the warm-up, which is not a leak.
"""

import argparse
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import STARTER, starter
from benchmarks.machine.processes import processes
from benchmarks.nights import many
from benchmarks.nights.suspended import suspended
from benchmarks.nights.timed import FEW_ROUNDS, run_night, why_over
from benchmarks.outputs.page import markdown, picture

WORK = SCHOOL / "benchmarks"
SMALL = [
    "grpo.prompts_per_round=4",
    "grpo.group_size=4",
    "grpo.refills=0",
    "grpo.min_useful_groups=1",
    "grpo.max_completion_tokens=24",
    "exam.max_completion_tokens=24",
]
Readings = dict[str, dict[int, list[float]]]  # MB, by process and round


def main() -> None:
    """Run the night, then print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--nights", type=int, help="measure so many nights in one home instead")
    parser.add_argument("--suspend", type=float, help="minutes for which a night stands still instead")
    parser.add_argument("--student", type=Path, default=STARTER)
    parser.add_argument("--plot", type=Path, help="write the picture here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.suspend is not None:
        print(json.dumps(suspended(options.suspend)))
        return
    if options.nights is not None:
        print(many.page(many.many_nights(SCHOOL / "soak", options.nights)))
        return
    starter(options.student)
    found = summarise(soak(options.student, options.rounds))
    if options.plot is not None:
        draw(found, options.plot)
    print(json.dumps({"rounds": options.rounds, "processes": found}) if options.json else page(found))


def soak(student: Path, rounds: int) -> Readings:
    """Run a night of `rounds` rounds, and return readings of its processes' memory.

    Raises RuntimeError if the night ends after fewer rounds.
    """
    found: Readings = defaultdict(lambda: defaultdict(list))

    def read(folder: Path) -> bool:
        """Read the memory once if a round is under way. Return False, so that the night continues."""
        done = _rounds_done(folder)
        if (folder / "round-01" / "sample").exists() and done < rounds:
            for name, megabytes in _megabytes().items():
                found[name][done + 1].append(megabytes)
        return False

    with tempfile.TemporaryDirectory(dir=make(WORK)) as home:
        overrides = [f"student.source={student.resolve()}", f"grpo.rounds={rounds}", *FEW_ROUNDS, *SMALL]
        folder = run_night(Path(home), overrides, until=read)
        if (done := _rounds_done(folder)) < rounds:
            raise RuntimeError(f"the night ended after {done} of {rounds} rounds: {why_over(folder)}")
    return found


def summarise(readings: Mapping[str, Mapping[int, Sequence[float]]]) -> dict[str, dict[str, Any]]:
    """Return, for each process, its rounds, the MB in each, the highest reading, and the slope in MB per round."""
    found: dict[str, dict[str, Any]] = {}
    for name, by_round in sorted(readings.items()):
        rounds = sorted(by_round)
        megabytes = [statistics.median(by_round[number]) for number in rounds]
        peak = max(max(own) for own in by_round.values())
        found[name] = {"rounds": rounds, "mb": megabytes, "peak_mb": peak, "slope_mb": slope(rounds, megabytes)}
    return found


def slope(rounds: Sequence[int], megabytes: Sequence[float]) -> float | None:
    """Return the second half's least-squares slope in MB per round, or None if it has fewer than two rounds."""
    half = len(rounds) // 2
    if len(rounds) - half < 2:
        return None
    return statistics.linear_regression(rounds[half:], megabytes[half:]).slope


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as a table."""
    rows = []
    for name, memory in found.items():
        megabytes, rising = memory["mb"], memory["slope_mb"]
        readings = (megabytes[0], megabytes[len(megabytes) // 2], megabytes[-1], memory["peak_mb"])
        slope_shown = "too few rounds" if rising is None else f"{rising:+.3f}"
        rows.append([name, *(f"{value:.1f}" for value in readings), slope_shown])
    return markdown("MB | first | middle | last | peak | a round, in the second half", rows)


def draw(found: Mapping[str, Mapping[str, Any]], file: Path) -> None:
    """Plot resident memory against rounds, one line per process."""
    with picture(file, 8, 4.5) as axes:
        for name, memory in found.items():
            rising = "" if memory["slope_mb"] is None else f", {memory['slope_mb']:+.2f} MB a round"
            axes.plot(memory["rounds"], memory["mb"], label=f"{name}{rising}")
        axes.set(xlabel="round", ylabel="resident memory (PSS), MB", title="One long night of short rounds")
        axes.set_ylim(bottom=0)


def _rounds_done(folder: Path) -> int:
    return len(list(folder.glob("round-*/checkpoint/manifest.json")))


def _megabytes() -> dict[str, float]:
    """Return the resident memory (PSS, MB) of the night's processes, summed by role."""
    sums: dict[str, float] = defaultdict(float)
    for role, process in processes():
        with suppress(psutil.Error):  # it has ended
            sums[role] += process.memory_full_info().pss / 1e6
    return sums


if __name__ == "__main__":
    main()
