"""Nights of ants in a row: how much food does the student deliver on each tier afterwards?

    python -m benchmarks.ants [--seeds 1 2] [--nights 3] [--set grpo.credit=td]

The nights of conf/ants.yaml share a home under `school/ants/` for each seed; the first begins with the untouched
student. Prints each night's exam (shares of the oracle's food, with what the lesson alone had reached), and then the
food that the last night's champion delivers on each tier, next to that of random, greedy and perfect ants. Tiers above
2 are never practised. Finished nights and exams are not run again. Writes docs/ants.png.
"""

import argparse
import datetime
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from benchmarks.inputs.school import SCHOOL
from benchmarks.machine.child import json_of
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import markdown, picture
from conf.sections.benchmark import TIERS
from flows.run.history import read_round_metrics
from rewards.environment import State
from rewards.environments.ants import Ants, greedy_policy, oracle, random_policy
from rewards.environments.episodes import texts_of
from rewards.verifier import Problem

CONFIG, PICTURE = Path("conf/ants.yaml"), Path("docs/ants.png")
FIRST = datetime.date(2026, 1, 1)
LAYOUTS = {"0": 100, "1": 100, "2": 100}  # and 30 of the other tiers
POLICIES = {"random": random_policy, "greedy": greedy_policy, "oracle": oracle}


def main() -> None:
    """Run the missing nights and exams, then write the picture and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--nights", type=int, default=3)
    parser.add_argument("--set", nargs="*", default=[], dest="settings", help="settings for all nights")
    options = parser.parse_args()
    nights, foods = [], []
    for seed in options.seeds:
        home = SCHOOL / "ants" / "-".join(["shipped", *options.settings]).replace("/", "-") / f"seed-{seed}"
        for number in range(options.nights):
            date = (FIRST + datetime.timedelta(days=number)).isoformat()
            settings = [f"seed={seed}", "exam.after_lessons=true", *options.settings]
            nights.append((seed, whole_night(home, *settings, config=CONFIG, date=date)))
        foods += [food_row(seed, tier, exam(home, nights[-1][1]["serving"], tier)) for tier in TIERS]
    columns = "seed | target | champion | after the lesson | candidate | p of the rounds | decision | rounds | minutes"
    print(markdown(columns, night_rows(nights)), end="\n\n")
    print(markdown("seed | tier | random | greedy | oracle | student | of the greedy ant's | valid actions", foods))
    if not options.settings:
        draw(nights)


def night_rows(nights: list[tuple[int, dict[str, Any]]]) -> Iterator[list[Any]]:
    """Yield a row for each night."""
    for seed, found in nights:
        before = found["accuracy"]["champion"], found["growth"]["before"], found["growth"]["after"]
        minutes = "interrupted" if found["minutes"] is None else f"{found['minutes']:.1f}"
        values = [f"{figures['accuracy']:.3f}" for figures in before]
        p = f"{found['growth']['p_value']:.2g}"
        yield [seed, found["target"], *values, p, found["decision"], found["rounds"], minutes]


def exam(home: Path, checkpoint: str, tier: str) -> pd.DataFrame:
    """Return a checkpoint's episodes on a tier, which are kept in a file after they were played once."""
    kept = home / f"exam-{checkpoint}-{tier}.parquet"
    if not kept.exists():
        target = f"{{benchmark: ants, levels: ['{tier}'], problems: {LAYOUTS.get(tier, 30)}}}"
        arguments = ["--config", str(CONFIG), f"--set=exam={{target: {target}, max_completion_tokens: 16}}"]
        environment = {"NIGHTSCHOOL_HOME": str(home.resolve())}
        json_of("flows", "evaluate", checkpoint, *arguments, "--rows", str(kept), "--json", environment=environment)
    return pd.read_parquet(kept)


def food_row(seed: int, tier: str, episodes: pd.DataFrame) -> list[Any]:
    """Return a row with the mean food of the other policies and of the student on the layouts of an exam."""
    layouts = {problem.problem_id: problem for problem in Ants((tier,)).problems("test")}
    problems = [layouts[problem_id] for problem_id in episodes.problem_id]
    others = [fmean(food(policy, problem) for problem in problems) for policy in POLICIES.values()]
    own = fmean(delivered(row) for row in episodes.to_dict("records"))
    valid = (episodes.valid * episodes.turns).sum() / episodes.turns.sum()
    return [seed, tier, *(f"{mean:.2f}" for mean in (*others, own)), f"{own / others[1]:.2f}", f"{valid:.1%}"]


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
        state, _, _, _, over, info = ants.step(state, policy(state, chance))
        found = info["food"]
    return found


def draw(nights: list[tuple[int, dict[str, Any]]]) -> None:
    """Plot the mean return and the share of valid actions in the rounds of each seed's nights."""
    with picture(PICTURE, 9, 3.6, columns=2) as axes:
        for seed in dict(nights):
            metrics = [each for own, found in nights if own == seed for each in read_round_metrics(found["folder"])]
            for axis, name in zip(axes, ("reward/value", "reward/valid"), strict=True):
                axis.plot(range(1, len(metrics) + 1), [each[name] for each in metrics], label=f"seed {seed}")
        axes[0].set(xlabel="round", ylabel="food, share of the oracle's", title="Practice: what is delivered")
        axes[1].set(xlabel="round", ylabel="share", ylim=(0, 1.02), title="Practice: valid actions")


if __name__ == "__main__":
    main()
