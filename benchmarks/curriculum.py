"""From which choice of problems does a student learn most? Short nights on all five levels of Arithmetic.

    python -m benchmarks.curriculum [--seeds 1 2 3 4 5] [--variants even signal …]

Every night has 6 rounds of 16 problems and starts with the student after the starter night's lessons, which solves
levels 1 and 2 but hardly ever levels 3 to 5. The variants are the values of `grpo.choice`. The exam has 400 problems of
all levels. Finished nights are not run again. Prints each seed's gain, the mean gain per million sampled tokens, and
the difference from `even` over pairs of nights with the same seed (Student's 95 % interval). Then prints the signal
(the mean absolute advantage) of the groups that each choice drew, and the choice's regret: how far this signal is below
that of the best level in the nights of `even` (Lattimore and Szepesvári, Bandit Algorithms, chapter 4).
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from benchmarks.nights.paired import ROUNDS, Run, short_nights, table
from benchmarks.outputs.page import joined, markdown
from tasks.rollouts.curriculum import ARMS

EVEN = "even"
CHOICES = (EVEN, "solve_rate", "signal")
LEVELS = ("1", "2", "3", "4", "5")


def main() -> None:
    """Run the missing nights and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--variants", nargs="+", default=CHOICES, choices=CHOICES)
    options = parser.parse_args()
    stages = f"stages=[{{grpo: {ROUNDS}}}]"
    found = short_nights({choice: (stages, f"grpo.choice={choice}") for choice in options.variants}, options.seeds)
    print(table(found, EVEN), regret(found), sep="\n\n")


def regret(found: Mapping[str, Sequence[Run]]) -> str:
    """Return a table of each choice's mean signal per group, and how far this signal is below that of the best level.

    Returns an empty string without nights of `even`, because only these show the signal of every level.
    """
    if EVEN not in found:
        return ""
    arms = {choice: pd.concat([arms_of(run.folder) for run in runs]) for choice, runs in found.items()}
    levels = {level: signal_of(arms[EVEN][arms[EVEN]["level"] == level]) for level in LEVELS}
    best = max(levels, key=lambda level: levels[level])
    rows = []
    for choice, drawn in arms.items():
        signal = signal_of(drawn)
        rows.append([choice, shares_of(drawn), f"{signal:.3f}", f"{levels[best] - signal:.3f}"])
    by_level = ", ".join(f"{level}: {signal:.3f}" for level, signal in levels.items())
    shares = markdown(f"problems | share of each level drawn | signal of a group | regret to level {best}", rows)
    return f"Signal of a group by level: {by_level}.\n\n{shares}"


def arms_of(night: Path) -> pd.DataFrame:
    """Return the arms that each of a night's rounds drew and graded, with their levels."""
    rounds = [json.loads(file.read_text()) for file in sorted(night.glob(f"round-*/score/{ARMS}"))]
    arms = pd.concat([pd.DataFrame.from_dict(one, orient="index") for one in rounds])
    arms = arms[(arms["drawn"] > 0) & arms["signal"].notna()]
    return arms.assign(level=arms.index.str.split("/").str[1])


def signal_of(arms: pd.DataFrame) -> float:
    """Return the mean signal per group, or 0 if no group was drawn."""
    return float((arms["signal"] * arms["drawn"]).sum() / max(arms["drawn"].sum(), 1))


def shares_of(arms: pd.DataFrame) -> str:
    """Return each level's share of the problems drawn, as one cell of a table."""
    drawn = arms.groupby("level")["drawn"].sum() / arms["drawn"].sum()
    return joined((drawn.get(level, 0.0) for level in LEVELS), ".2f")


if __name__ == "__main__":
    main()
