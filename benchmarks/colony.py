"""Do three ants with one nest find more food than three times one ant, and do trails and signals pay?

    python -m benchmarks.colony [--seeds 1 2] [--ants 1 3]

Greedy ants first play the 200 exam layouts of each of three tiers, alone and in threes, with and without notes, trails
or signals. Then nights teach a student of a million weights, trained from scratch, on tier 0, alone and in threes, with
the same number of steps and turns. It then plays the exam's first 100 layouts. Each night is a line in
docs/colony.jsonl and is not repeated; `--seeds` without a number only writes the tables in docs/ants.md.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.ants import CONFIG, PAGE, delivered
from benchmarks.inputs.options import options
from benchmarks.inputs.pretrained import pretrained
from benchmarks.inputs.school import SCHOOL
from benchmarks.inputs.scripted_ants import with_notes, with_signals, with_trails
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.records import Run, sweep
from rewards.environment import State
from rewards.environments.ants import Ants, greedy_policy, outcome, parse
from rewards.environments.episodes import texts_of
from tasks.evaluation.statistics import bootstrap
from tasks.tables import EVALUATIONS, read_table

RESULTS, NAME = Path("docs/colony.jsonl"), "benchmarks.colony"
SCRIPTED = ("1", "2", "3")  # tiers
HABITS = {1: (greedy_policy, with_notes), 3: (greedy_policy, with_trails, with_signals, with_notes)}
TIER = "0"  # of the students
STEPS, PROBLEMS, ROUNDS = 600, 12, 10  # steps of the lesson; problems of a round for one ant, each played eight times


def main() -> None:
    """Run the missing nights, and write the tables."""
    given = options(__doc__, {"--seeds": [1, 2], "--ants": [1, 3]})
    runs = sweep(RESULTS, night, ants=given.ants, seed=given.seeds)
    fill(PAGE, NAME, "\n\n".join(filter(None, [scripted(), students(runs)])))


def scripted() -> str:
    """Return a Markdown table: what greedy ants deliver, and what each habit adds to one of them or to three."""
    rows = []
    for tier in SCRIPTED:
        (one, noting), (three, *others) = ([food(tier, ants, habit) for habit in HABITS[ants]] for ants in (1, 3))
        rows.append([tier, f"{one.mean():.2f}", interval(noting - one), f"{three.mean():.2f}"])
        rows[-1] += [interval(each - three) for each in others]
    return markdown("tier | one ant | with notes | three ants | with trails | with signals | with notes", rows)


def food(tier: str, ants: int, habit: Callable[[State, random.Random], str]) -> Any:
    """Return the food that scripted ants deliver on each layout of a tier's exam."""
    game = Ants((tier,), ants=ants)
    return np.array([outcome(game, problem, habit)["food"] for problem in game.problems("test")])


def interval(differences: Any) -> str:
    """Return a mean with its 95 % interval."""
    low, high = bootstrap(differences, seed=1)
    return f"{fmean(differences):+.2f} [{low:+.2f}, {high:+.2f}]"


def night(ants: int, seed: int) -> Run:
    """Run a night with this number of ants, and return what they then deliver."""
    choice = {"name": "ants", "levels": [TIER], "ants": ants}
    target = json.dumps({"benchmark": "ants", "levels": [TIER], "ants": ants, "problems": 100})
    settings = [f"seed={seed}", f"student.source={pretrained('1M')}", "budget_minutes=null"]
    settings += [f"benchmarks={json.dumps([choice])}", f"grpo.rounds={ROUNDS}"]
    settings += [f"distill.steps={STEPS}", f"distill.batch_size={3 // ants}", "lessons.quiz_problems=0"]
    settings += [f"distill.reference_solutions={STEPS * 3 // ants}", f"grpo.prompts_per_round={PROBLEMS // ants}"]
    settings.append(f'exam={{"target": {target}, "max_completion_tokens": 16, "after_lessons": true}}')
    found = whole_night(SCHOOL / "colony" / f"{ants}-{seed}", *settings, config=CONFIG)
    exams, game = found["folder"] / "evaluate", Ants((TIER,), ants=ants)
    looks = {role: played(exams / f"whole-{role}", game) for role in ("distilled", "candidate")}
    return {"minutes": found["minutes"], "rounds": found["rounds"]} | looks


def played(folder: Path, game: Ants) -> dict[str, Any]:
    """Return an exam's food by layout, and its shares of valid turns, and of turns with trails and signals."""
    exams = read_table(folder / "evaluations.parquet", EVALUATIONS)
    acts = Counter(act for text in exams.text for each in texts_of(text) for act, _ in parse(each))
    shared = sum(acts[act] for act in ("DEPOSIT", "REINFORCE", "SIGNAL")) / exams.turns.sum()
    valid = (exams.valid * exams.turns).sum() / exams.turns.sum()
    food = {row["problem_id"]: delivered(row, game) for row in exams.to_dict("records")}
    return {"food": food, "valid": float(valid), "shared": float(shared)}


def students(runs: Sequence[Run]) -> str:
    """Return a Markdown table of the nights, and by how much three ants deliver more than three times one."""
    rows = []
    for run in runs:
        looks = [fmean(run[look]["food"].values()) for look in ("distilled", "candidate")]
        figures = [f"{run['candidate'][share]:.1%}" for share in ("valid", "shared")]
        rows.append([run["ants"], run["seed"], *(f"{each:.2f}" for each in looks), *figures, run["rounds"]])
    head = "ants | seed | food after the lesson | after the rounds | valid | trails or signals | rounds"
    food = {(run["ants"], run["seed"]): run["candidate"]["food"] for run in runs}
    seeds = [seed for ants, seed in food if ants == 3 and (1, seed) in food]
    more = [food[3, seed][name] - 3 * alone for seed in seeds for name, alone in food[1, seed].items()]
    added = f"\n\nThree ants less three times one, by layout: {interval(np.array(more))}." if more else ""
    return markdown(head, rows) + added if rows else ""


if __name__ == "__main__":
    main()
