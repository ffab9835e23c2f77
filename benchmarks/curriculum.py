"""Which choice of problems learns most from the same number of problems? Short nights on all five levels of Arithmetic.

    python -m benchmarks.curriculum [--seeds 1 2 3 4 5] [--variants even signal …]

Every night begins with the starter after its night's lessons, which knows levels 1 and 2, and takes 12 rounds of 24
problems; levels 3 to 5 are nearly never solved at first. The variants are the values of `grpo.choice`, and nights that
draw from one level alone: the best of those is what the regret is to. The exam has 500 problems of all levels. Finished
nights are not run again. Prints the gain for each seed, the mean gain for a million sampled tokens, and the difference
to `even` over the pairs of nights (same seed) with Student's 95 % interval.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.nights.paired import ROUNDS, Run, short_nights, table

EVEN = "even"
CHOICES = (EVEN, "solve_rate", "signal", "progress")
LEVELS = {f"level {level}": level for level in "12345"}


def main() -> None:
    """Run the missing nights and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--variants", nargs="+", default=CHOICES, choices=(*CHOICES, *LEVELS))
    options = parser.parse_args()
    found = short_nights({variant: settings(variant) for variant in options.variants}, options.seeds)
    print("\n".join([table(found, "problems", EVEN), *regret(found)]))


def settings(variant: str) -> tuple[str, ...]:
    """Return the settings of a variant's nights."""
    levels, choice = (f'["{LEVELS[variant]}"]', EVEN) if variant in LEVELS else ("null", variant)
    return (
        f"benchmarks=[{{name: arithmetic, levels: {levels}}}]",
        f"stages=[{{grpo: {ROUNDS}}}]",
        f"grpo.choice={choice}",
    )


def regret(found: Mapping[str, Sequence[Run]]) -> list[str]:
    """Return lines with the mean gain that each choice is short of the best single level; none without such nights."""
    means = {variant: statistics.mean(run.gain for run in runs) for variant, runs in found.items()}
    fixed = {variant: mean for variant, mean in means.items() if variant in LEVELS}
    if not fixed:
        return []
    best = max(fixed, key=lambda variant: fixed[variant])
    lines = [f"- {variant}: {fixed[best] - means[variant]:+.3f}" for variant in means if variant not in LEVELS]
    return ["", f"The best single level is {best} ({fixed[best]:+.3f}); regret to it:", *lines]


if __name__ == "__main__":
    main()
