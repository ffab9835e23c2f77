"""Nights of ants with several seeds: do the rounds find more food than the teacher's episodes alone?

    python -m benchmarks.ants [--seeds 1 2 3] [--set grpo.credit=td]

Each night of conf/ants.yaml begins with the untouched student, in a home of its own under `school/ants/`. Prints the
food that each model delivers in the exam's episodes, beside random, greedy and perfect ants, with the rounds' own part
(paired, exact sign-flip test on the food), and the share of valid actions; tier 1 is never practised, and examined only
of a candidate that is better. Finished nights
are not run again. Writes docs/ants.png.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.machine.child import json_of
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
EXAMS = {"champion": "champion", "distilled": "whole-distilled", "candidate": "candidate"}  # their folders
POLICIES = {"random": random_policy, "greedy": greedy_policy, "oracle": oracle}


def main() -> None:
    """Run the missing nights, then print the tables and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", help="of all nights")
    options = parser.parse_args()
    nights = {seed: night(seed, options.settings) for seed in options.seeds}
    if not options.settings:
        picture(nights).savefig(PICTURE, dpi=110)
    print(tables(nights))


def night(seed: int, settings: list[str]) -> dict[str, Any]:
    """Return the summary of a seed's night, with the exams' tables and the minutes of the whole command."""
    home = make(HOMES / "-".join(["shipped", *settings]).replace("/", "-")) / f"seed-{seed}"
    minutes, begun, started = home / "minutes.txt", home.exists(), time.monotonic()
    arguments = ["--json", "--config", str(CONFIG), "--date", "2026-01-01"]
    arguments += [f"--set={setting}" for setting in (f"seed={seed}", "exam.after_lessons=true", *settings)]
    summary = json_of("flows", "night", *arguments, environment={"NIGHTSCHOOL_HOME": str(home.resolve())})
    if not begun:
        minutes.write_text(str((time.monotonic() - started) / 60))
    folder = home / "nights" / summary["night"]
    exams = {
        role: read_table(folder / "evaluate" / name / "evaluations.parquet", EVALUATIONS)
        for role, name in EXAMS.items()
    }
    return summary | {"minutes": float(minutes.read_text()), "folder": folder, "exams": exams}


def tables(nights: dict[int, dict[str, Any]]) -> str:
    """Return the tables of food and of valid actions, in Markdown."""
    lines = ["| seed | tier | random | greedy | oracle | untouched | distilled | candidate | rounds' part | p |"]
    lines += [f"|{'---|' * 10}"]
    for seed, found in nights.items():
        for tier in TIERS:
            exams = [rows(found["exams"][role], tier) for role in EXAMS]
            if exams[0].empty:
                continue
            problems = problems_of(exams[0], tier)
            yardsticks = [
                statistics.mean(food(policy, problem) for problem in problems) for policy in POLICIES.values()
            ]
            by_role = [np.array([delivered(row) for row in exam.to_dict("records")]) for exam in exams]
            delivers = [f"{each.mean():.2f}" if len(each) else "–" for each in by_role]
            means = " | ".join([*(f"{mean:.2f}" for mean in yardsticks), *delivers])
            lines.append(f"| {seed} | {tier} | {means} | {rounds_part(by_role[1], by_role[2], seed)} |")
    lines += [
        "",
        "| seed | valid actions: untouched, distilled, candidate | decision | rounds | minutes |",
        "|---|---|---|---|---|",
    ]
    for seed, found in nights.items():
        exams = [rows(found["exams"][role], "0") for role in EXAMS]
        valid = ", ".join(f"{(exam.valid * exam.turns).sum() / exam.turns.sum():.1%}" for exam in exams)
        lines.append(f"| {seed} | {valid} | {found['decision']} | {found['rounds']} | {found['minutes']:.1f} |")
    return "\n".join(lines)


def rounds_part(before: np.ndarray, after: np.ndarray, seed: int) -> str:
    """Return two cells: what the rounds gained, with its interval, and its p-value; dashes without an exam before."""
    if len(before) == 0:
        return "– | –"
    gained = (after - before).astype(float)
    low, high = bootstrap(gained, seed=seed)
    return f"{gained.mean():+.2f} [{low:+.2f}, {high:+.2f}] | {sign_flip(gained):.2g}"


def rows(exam: pd.DataFrame, tier: str) -> pd.DataFrame:
    """Return the rows of a tier, in the problems' order."""
    return exam[exam.benchmark == f"ants-{tier}"].sort_values("problem_id")


def problems_of(exam: pd.DataFrame, tier: str) -> list[Problem]:
    """Return the layouts of an exam's rows."""
    by_id = {problem.problem_id: problem for problem in Ants((tier,)).problems("test")}
    return [by_id[problem_id] for problem_id in exam.problem_id]


def delivered(row: dict[Any, Any]) -> int:
    """Return the food that an episode of the exam delivered, by playing it again."""
    _, tier, seed = row["problem_id"].split("/")
    texts = iter(texts_of(row["text"]))
    return food(lambda state, chance: next(texts), Problem(f"ants/{tier}/{seed}", "ants", "", "", tier))


def food(policy: Callable[[State, random.Random], str], problem: Problem) -> int:
    """Return the food that a policy delivers."""
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


def picture(nights: dict[int, dict[str, Any]]) -> Figure:
    """Plot the mean return and the share of valid actions in the rounds, for each seed."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for seed, found in nights.items():
        metrics = read_round_metrics(found["folder"])
        for axis, name in zip(axes, ("reward/value", "reward/valid"), strict=True):
            axis.plot(range(1, len(metrics) + 1), [each[name] for each in metrics], label=f"seed {seed}")
    axes[0].set(xlabel="round", ylabel="food, share of the oracle's", title="Practice: what is delivered")
    axes[1].set(xlabel="round", ylabel="share", ylim=(0, 1.02), title="Practice: valid actions")
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend()
    return figure


if __name__ == "__main__":
    main()
