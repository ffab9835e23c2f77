"""Does a student learn more from problems that it writes itself than from generated ones?

    python -m benchmarks.self_play [--seeds 1 2 3 4 5] [--variants solve_rate …]

Every night starts with the student after the starter night's lessons and has 6 rounds of 16 Arithmetic problems. They
are drawn (`solve_rate`, as in `benchmarks.curriculum`) or written by the student, which learns to answer them and, in
the variant `learns both`, to write them. The exam has 400 problems of all five levels. Finished nights are not run
again. Prints each seed's gain, the mean gain per million sampled tokens (including written problems), the difference
from `solve_rate` over pairs of nights with the same seed (Student's 95 % interval), and the fates of the written texts.
"""

import argparse
from collections.abc import Mapping, Sequence

import pandas as pd

from benchmarks.nights.paired import ROUNDS, Run, short_nights, table
from benchmarks.outputs.page import markdown

DRAWN = "solve_rate"
VARIANTS: Mapping[str, tuple[str, ...]] = {
    DRAWN: (f"stages=[{{grpo: {ROUNDS}}}]", "grpo.choice=solve_rate"),
    "answers its own": (f"stages=[{{self_play: {ROUNDS}}}]", "self_play.train=answerer"),
    "learns both": (f"stages=[{{self_play: {ROUNDS}}}]", "self_play.train=both"),
}


def main() -> None:
    """Run the missing nights and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--variants", nargs="+", default=[*VARIANTS], choices=VARIANTS)
    options = parser.parse_args()
    found = short_nights({variant: VARIANTS[variant] for variant in options.variants}, options.seeds)
    print(table(found, DRAWN), texts(found), sep="\n\n")


def texts(found: Mapping[str, Sequence[Run]]) -> str:
    """Return a table of the texts that the student wrote as problems, with the shares that met each fate."""
    rows = []
    for variant, runs in found.items():
        files = [file for run in runs for file in run.folder.glob("round-*/select_prompts/proposals.parquet")]
        if files:
            verdicts = pd.concat([pd.read_parquet(file, columns=["verdict"]) for file in files])["verdict"]
            shares = verdicts.value_counts(normalize=True)
            fates = (f"{shares.get(name, 0.0):.3f}" for name in ("admitted", "repeated", "unreadable", "surplus"))
            rows.append([variant, len(verdicts), *fates])
    return markdown("problems | texts | admitted | repeated | unreadable | more than needed", rows)


if __name__ == "__main__":
    main()
