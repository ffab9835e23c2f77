"""Which choice of problems learns most from the same number of tokens? Short nights on all five levels of Arithmetic.

    python -m benchmarks.curriculum [--seeds 1 2 3 4 5] [--variants even signal …]

Every night begins with the starter after its night's lessons, which know levels 1 and 2, and takes the same number of
rounds without refills; levels 3 to 5 are nearly never solved at first. The variants are the values of `grpo.choice`,
and nights that draw from one level alone: the best of those is what the regret is to. The exam has 500 problems of all
levels. Finished nights are not run again. Prints the gain for each seed, the mean gain for a million sampled tokens,
and the difference to `even` over the pairs of nights (same seed) with Student's 95 % interval.
"""

import argparse
import json
import math
import statistics
from typing import Any, NamedTuple

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import starter
from benchmarks.machine.child import json_of
from benchmarks.nights.learning_runs import distilled
from conf.load import STARTER
from tasks.layout import committed_rounds
from tasks.rollouts.curriculum import read_arms

HOMES = SCHOOL / "curriculum"
EVEN = "even"
CHOICES = (EVEN, "solve_rate", "signal", "progress")
LEVELS = ("1", "2", "3", "4", "5")
VARIANTS = (*CHOICES, *(f"level {level}" for level in LEVELS))
SETTINGS = (
    "stages=[grpo]",
    "grpo.rounds=12",
    "grpo.prompts_per_round=24",
    "grpo.refills=0",
    "grpo.quiz_every_rounds=0",
    "budget_minutes=null",
    "day.generated_traces=0",
    "exam.guards=[]",
    "exam.english_margin=null",
    "exam.next_level_at=null",
    "exam.target={benchmark: arithmetic, problems: 500}",
)


class Run(NamedTuple):
    """A night: the share of the exam that it gained, and the tokens that it sampled."""

    gain: float
    tokens: int


def main() -> None:
    """Run the missing nights and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--variants", nargs="+", default=CHOICES, choices=VARIANTS)
    options = parser.parse_args()
    found = {variant: [night(seed, variant) for seed in options.seeds] for variant in options.variants}
    print(table(found))


def night(seed: int, variant: str) -> Run:
    """Return the outcome of a seed's night."""
    student = distilled(starter(), seed, make(HOMES) / f"distilled-{seed}")
    home = HOMES / f"{variant.replace(' ', '-')}-{seed}"
    fixed = variant.removeprefix("level ") if variant not in CHOICES else None
    levels = f'["{fixed}"]' if fixed else "null"
    settings = [f"seed={seed}", f"student.source={student.resolve()}", *SETTINGS]
    settings += [f"benchmarks=[{{name: arithmetic, levels: {levels}}}]", f"grpo.choice={EVEN if fixed else variant}"]
    arguments = ["--json", "--config", str(STARTER), "--date", "2026-01-01", *(f"--set={each}" for each in settings)]
    summary = json_of("flows", "night", *arguments, environment={"NIGHTSCHOOL_HOME": str(home.resolve())})
    folder = home / "nights" / summary["night"]
    decision = json.loads((folder / "decide" / "decision.json").read_text())
    tokens = sum(row["tokens"] for one in committed_rounds(folder) for row in read_arms(one / "score"))
    return Run(decision["comparisons"]["candidate"][decision["target"]]["difference"], tokens)


def table(found: dict[str, list[Run]]) -> str:
    """Return the gains in Markdown."""
    lines = ["| problems | gain, each seed | mean | per million tokens | against `even` |", "|---|---|---|---|---|"]
    for variant, runs in found.items():
        gains = [run.gain for run in runs]
        rate = statistics.mean(1e6 * run.gain / run.tokens for run in runs)
        each, mean = ", ".join(f"{gain:+.3f}" for gain in gains), statistics.mean(gains)
        beside = against(gains, [run.gain for run in found.get(EVEN, [])])
        lines.append(f"| {variant} | {each} | {mean:+.3f} | {rate:+.2f} | {beside} |")
    fixed = {
        variant: statistics.mean(run.gain for run in runs) for variant, runs in found.items() if "level" in variant
    }
    if fixed:
        best = max(fixed, key=lambda variant: fixed[variant])
        lines += ["", f"The best fixed arm is {best} ({fixed[best]:+.3f}); regret to it:"]
        lines += [
            f"- {variant}: {fixed[best] - statistics.mean(run.gain for run in runs):+.3f}"
            for variant, runs in found.items()
            if variant in CHOICES
        ]
    return "\n".join(lines)


def against(gains: list[float], even: list[float]) -> str:
    """Return the mean difference of pairs of nights with its interval, mean ± t · s / √n."""
    from scipy.stats import t

    if len(even) != len(gains) or len(gains) < 2 or gains == even:
        return ""
    differences = [one - other for one, other in zip(gains, even, strict=True)]
    spread: Any = statistics.stdev(differences) * t.ppf(0.975, len(gains) - 1) / math.sqrt(len(gains))
    mean = statistics.mean(differences)
    return f"{mean:+.3f} [{mean - spread:+.3f}, {mean + spread:+.3f}]"


if __name__ == "__main__":
    main()
