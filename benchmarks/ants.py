"""Nights of ants with several seeds: does the student find more food after the rounds than after the lesson alone?

    python -m benchmarks.ants [--seeds 1 2 3] [--set grpo.credit=td]

Each night of conf/ants.yaml starts with the untouched student, in its own home under `school/ants/`. Prints the food
that each model delivers in the exam's episodes, next to that of random, greedy and perfect ants; how much food the
rounds added (paired, exact sign-flip test); and the share of valid actions. Tier 1 is never practised, and only a
better candidate is examined on it. Finished nights are not run again. Writes docs/ants.png.
"""

import argparse
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import joined, markdown, picture
from flows.run.history import read_round_metrics
from rewards.environment import State
from rewards.environments.ants import Ants, greedy_policy, oracle, random_policy
from rewards.environments.episodes import texts_of
from rewards.verifier import Problem
from tasks.evaluation.statistics import bootstrap, sign_flip
from tasks.tables import EVALUATIONS, read_table

HOMES = SCHOOL / "ants"
CONFIG = Path("conf/ants.yaml")
PICTURE = Path("docs/ants.png")
TIERS = ("0", "1")
EXAMS = {"champion": "champion", "distilled": "whole-distilled", "candidate": "candidate"}  # their exams' folders
POLICIES = {"random": random_policy, "greedy": greedy_policy, "oracle": oracle}


def main() -> None:
    """Run the missing nights, then write the picture and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", help="settings for all nights")
    options = parser.parse_args()
    nights = {seed: night(seed, options.settings) for seed in options.seeds}
    if not options.settings:
        draw(nights)
    print(tables(nights))


def night(seed: int, settings: list[str]) -> dict[str, Any]:
    """Run a seed's night unless it is finished, and return its summary, with the exams' tables as `exams`."""
    home = HOMES / "-".join(["shipped", *settings]).replace("/", "-") / f"seed-{seed}"
    found = whole_night(home, f"seed={seed}", "exam.after_lessons=true", *settings, config=CONFIG)
    exams = {
        role: read_table(found["folder"] / "evaluate" / name / "evaluations.parquet", EVALUATIONS)
        for role, name in EXAMS.items()
    }
    return found | {"exams": exams}


def tables(nights: dict[int, dict[str, Any]]) -> str:
    """Return the tables of food and of valid actions, in Markdown."""
    columns = "seed | tier | random | greedy | oracle | untouched | distilled | candidate | rounds' part | p"
    delivery = (_delivery(seed, tier, found["exams"]) for seed, found in nights.items() for tier in TIERS)
    validity = (_validity(seed, found) for seed, found in nights.items())
    return "\n\n".join(
        [
            markdown(columns, filter(None, delivery)),
            markdown("seed | valid actions: untouched, distilled, candidate | decision | rounds | minutes", validity),
        ]
    )


def _delivery(seed: int, tier: str, exams: dict[str, pd.DataFrame]) -> list[Any]:
    """Return a row with the food delivered in a night's exams on a tier, or an empty list if there were none."""
    by_role = [rows(exams[role], tier) for role in EXAMS]
    if by_role[0].empty:
        return []
    layouts = {problem.problem_id: problem for problem in Ants((tier,)).problems("test")}
    problems = [layouts[problem_id] for problem_id in by_role[0].problem_id]
    yardsticks = [statistics.mean(food(policy, problem) for problem in problems) for policy in POLICIES.values()]
    delivers = [np.array([delivered(row) for row in exam.to_dict("records")]) for exam in by_role]
    means = [f"{each.mean():.2f}" if len(each) else "–" for each in delivers]
    return [seed, tier, *(f"{mean:.2f}" for mean in yardsticks), *means, *rounds_part(delivers[1], delivers[2], seed)]


def _validity(seed: int, found: dict[str, Any]) -> list[Any]:
    exams = [rows(found["exams"][role], "0") for role in EXAMS]
    valid = joined(((exam.valid * exam.turns).sum() / exam.turns.sum() for exam in exams), ".1%")
    minutes = "interrupted" if found["minutes"] is None else f"{found['minutes']:.1f}"
    return [seed, valid, found["decision"], found["rounds"], minutes]


def rounds_part(before: np.ndarray, after: np.ndarray, seed: int) -> list[str]:
    """Return two cells: the food that the rounds added, with its interval, and its p-value; dashes without exams."""
    if len(before) == 0:
        return ["–", "–"]
    gained = (after - before).astype(float)
    low, high = bootstrap(gained, seed=seed)
    return [f"{gained.mean():+.2f} [{low:+.2f}, {high:+.2f}]", f"{sign_flip(gained):.2g}"]


def rows(exam: pd.DataFrame, tier: str) -> pd.DataFrame:
    """Return an exam's rows for a tier, sorted by problem."""
    return exam[exam.benchmark == f"ants-{tier}"].sort_values("problem_id")


def delivered(row: dict[Any, Any]) -> int:
    """Replay an episode of an exam, and return the food that it delivered."""
    _, tier, seed = row["problem_id"].split("/")
    texts = iter(texts_of(row["text"]))
    return food(lambda state, chance: next(texts), Problem(f"ants/{tier}/{seed}", "ants", "", "", tier))


def food(policy: Callable[[State, random.Random], str], problem: Problem) -> int:
    """Play a problem with a policy, and return the food delivered."""
    ants, chance, over, found = Ants((str(problem.level),)), random.Random(problem.problem_id), False, 0
    state, _ = ants.reset(problem)
    while not over:
        try:
            text = policy(state, chance)
        except StopIteration:  # the context was full
            break
        state, _, _, _, over, info = ants.step(state, text)
        found = info["food"]
    return found


def draw(nights: dict[int, dict[str, Any]]) -> None:
    """Plot the mean return and the share of valid actions in the rounds, for each seed."""
    with picture(PICTURE, 9, 3.6, columns=2) as axes:
        for seed, found in nights.items():
            metrics = read_round_metrics(found["folder"])
            for axis, name in zip(axes, ("reward/value", "reward/valid"), strict=True):
                axis.plot(range(1, len(metrics) + 1), [each[name] for each in metrics], label=f"seed {seed}")
        axes[0].set(xlabel="round", ylabel="food, share of the oracle's", title="Practice: what is delivered")
        axes[1].set(xlabel="round", ylabel="share", ylim=(0, 1.02), title="Practice: valid actions")


if __name__ == "__main__":
    main()
