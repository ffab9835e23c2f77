"""From which choice of problems does a student learn most? Short nights on all five levels of Arithmetic.

    python -m benchmarks.curriculum [--seeds 1 2 3 4 5] [--variants even signal …]

Every night has 6 rounds of 16 problems and starts with the student after the starter night's lessons, which solves
levels 1 and 2 but hardly ever levels 3 to 5. The variants are the values of `grpo.choice`. The exam has 400 problems of
all levels. Finished nights are not run again. Prints each seed's gain, the mean gain per million sampled tokens, and
the difference from `even` over pairs of nights with the same seed (Student's 95 % interval). Then prints the signal
(the mean absolute advantage) of the groups that each choice drew, and the choice's regret: how far this signal is below
that of the best level in the nights of `even` (Lattimore and Szepesvári, Bandit Algorithms, chapter 4).
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pandas as pd

from benchmarks.inputs.options import options
from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import starter
from benchmarks.nights.learning_runs import distilled
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import joined, markdown
from benchmarks.outputs.power import mean_difference
from conf.storage.home import Home
from tasks.rollouts.curriculum import ARMS

HOMES = SCHOOL / "short_nights"
EVEN = "even"
CHOICES = (EVEN, "solve_rate", "signal")
LEVELS = ("1", "2", "3", "4", "5")
SETTINGS = (
    "stages=[{grpo: 6}]",
    "benchmarks=[{name: arithmetic}]",
    "grpo.prompts_per_round=16",
    "grpo.refills=0",
    "grpo.quiz_every_rounds=0",
    "budget_minutes=null",
    "day.generated_traces=0",
    "exam.guards=[]",
    "exam.english_margin=null",
    "exam.after_lessons=true",
    "lessons.quiz_problems=0",
    "exam.next_level_at=null",
    "exam.target={benchmark: arithmetic, problems: 400}",
)


class Run(NamedTuple):
    """A night: its folder, its gain in accuracy in the exam, and the number of tokens that it sampled."""

    folder: Path
    gain: float
    tokens: int


def main() -> None:
    """Run the missing nights and print the tables."""
    given = options(__doc__, {"--seeds": [1, 2, 3, 4, 5], "--variants": CHOICES})
    nights = {(choice, seed): night(choice, seed) for seed in given.seeds for choice in given.variants}
    found = {choice: [nights[choice, seed] for seed in given.seeds] for choice in given.variants}
    print(table(found), regret(found), sep="\n\n")


def night(choice: str, seed: int) -> Run:
    """Run a night, unless it is finished, and return its outcome.

    All nights start with one student, which answers the exam once.
    """
    student = distilled(starter(), 1, make(HOMES) / "student")
    home, exams = Home(HOMES.resolve() / f"{choice}-{seed}"), HOMES / "exams"
    if exams.exists() and not home.root.exists():
        home.make_private()
        shutil.copytree(exams, home.exams)
    settings = f"seed={seed}", f"student.source={student.resolve()}", *SETTINGS, f"grpo.choice={choice}"
    summary = whole_night(home.root, *settings)
    if not exams.exists():
        shutil.copytree(home.exams, exams)
    sampled = summary["folder"].glob("round-*/**/rollouts.parquet")
    tokens = sum(int(pd.read_parquet(file, columns=["token_ids"])["token_ids"].map(len).sum()) for file in sampled)
    return Run(summary["folder"], summary["growth"]["difference"], tokens)


def table(found: Mapping[str, Sequence[Run]]) -> str:
    """Return a Markdown table of the gains, with each choice compared to `even`, seed by seed."""
    rows = []
    for choice, runs in found.items():
        gains = [run.gain for run in runs]
        rate = fmean(1e6 * run.gain / run.tokens for run in runs)
        pairs = zip(runs, found[EVEN], strict=True) if choice != EVEN and EVEN in found else ()
        beside = [run.gain - other.gain for run, other in pairs]
        rows.append([choice, joined(gains, "+.3f"), f"{fmean(gains):+.3f}", f"{rate:+.2f}", mean_difference(beside)])
    return markdown(f"problems | gain, each seed | mean | per million tokens | against {EVEN}", rows)


def regret(found: Mapping[str, Sequence[Run]]) -> str:
    """Return a table of each choice's mean signal per group, and how far this signal is below that of the best level.

    Returns an empty string without nights of `even`, because only these show the signal of every level.
    """
    if EVEN not in found:
        return ""
    drawn = {choice: pd.concat([by_level(run.folder) for run in runs]) for choice, runs in found.items()}
    drawn = {choice: arms.groupby("level").sum().reindex(LEVELS, fill_value=0) for choice, arms in drawn.items()}
    levels = (drawn[EVEN]["signal"] / drawn[EVEN]["drawn"].clip(lower=1)).to_dict()
    best = max(levels, key=lambda level: levels[level])
    rows = []
    for choice, arms in drawn.items():
        groups = arms["drawn"].sum()
        signal = arms["signal"].sum() / groups
        rows.append([choice, joined(arms["drawn"] / groups, ".2f"), f"{signal:.3f}", f"{levels[best] - signal:.3f}"])
    of_levels = ", ".join(f"{level}: {signal:.3f}" for level, signal in levels.items())
    shares = markdown(f"problems | share of each level drawn | signal of a group | regret to level {best}", rows)
    return f"Signal of a group by level: {of_levels}.\n\n{shares}"


def by_level(night: Path) -> pd.DataFrame:
    """Return each arm that a night's rounds drew and graded: its `level`, its groups, and the sum of their signals."""
    rounds = [json.loads(file.read_text()) for file in sorted(night.glob(f"round-*/score/{ARMS}"))]
    arms = pd.concat([pd.DataFrame.from_dict(one, orient="index") for one in rounds])
    arms = arms[(arms["drawn"] > 0) & arms["signal"].notna()]
    levels = arms.index.str.split("/").str[1]
    return pd.DataFrame({"level": levels, "drawn": arms["drawn"], "signal": arms["signal"] * arms["drawn"]})


if __name__ == "__main__":
    main()
