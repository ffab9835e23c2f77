"""Nights of ants in a row: how much food does the student deliver on each tier afterwards?

    python -m benchmarks.ants [--seeds 1 2] [--nights 3] [--set grpo.credit=td]

The nights of conf/ants.yaml share a home under `school/ants/` for each seed; the first begins with the untouched
student, which is the same for all seeds. Each seed is a line in docs/ants.jsonl: the nights' exams (shares of the
oracle's food, with what the lesson alone had reached), and the food that the last night's champion then delivers on
each tier, next to that of random and greedy ants and of an oracle that always goes to the nearest food. Tiers above 2
are never practised. A recorded seed is not repeated; an interrupted one goes on. Writes the tables in docs/ants.md.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from benchmarks.inputs.options import options
from benchmarks.inputs.school import SCHOOL
from benchmarks.machine.child import nightschool
from benchmarks.nights.whole import date_of, whole_night
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.records import Run, sweep
from conf.sections.benchmark import TIERS
from flows.run.history import read_round_metrics
from rewards.environments.ants import Ants, greedy_policy, oracle, outcome, random_policy
from rewards.environments.episodes import replay, texts_of
from rewards.verifier import Problem

CONFIG = Path("conf/ants.yaml")
RESULTS, PAGE = (Path("docs/ants").with_suffix(kind) for kind in (".jsonl", ".md"))
NAME = "benchmarks.ants"
LAYOUTS = {"0": 100, "1": 100, "2": 100}  # and 30 of the other tiers
POLICIES = {"random": random_policy, "greedy": greedy_policy, "oracle": oracle}


def main() -> None:
    """Run the missing seeds, then write the tables."""
    given = options(__doc__, {"--seeds": [1, 2], "--nights": 3, "--set": []})
    if runs := sweep(RESULTS, run, seed=given.seeds, nights=[given.nights], settings=[given.set]):
        fill(PAGE, NAME, tables(runs))


def run(seed: int, nights: int, settings: Sequence[str]) -> Run:
    """Run the nights of a seed, and play the last champion's exams."""
    home = SCHOOL / "ants" / "-".join(["shipped", *settings]).replace("/", "-") / f"seed-{seed}"
    done = list[Run]()
    for number in range(nights):
        found = whole_night(
            home, f"seed={seed}", "exam.after_lessons=true", *settings, config=CONFIG, date=date_of(number)
        )
        growth = found["growth"]
        exams = found["accuracy"]["champion"], growth["before"], growth["after"]
        kept = {name: found[name] for name in ("target", "decision", "minutes", "serving")}
        shares, rounds = [each["accuracy"] for each in exams], len(read_round_metrics(found["folder"]))
        done.append(kept | {"shares": shares, "p": growth["p_value"], "rounds": rounds})
    played = {tier: figures(exam(home, done[-1]["serving"], tier), tier) for tier in TIERS}
    return {"run": done, "tiers": played}


def tables(runs: Sequence[Run]) -> str:
    """Return two Markdown tables: the nights, and what the last champion delivers on each tier."""
    nights, tiers = [], []
    for one in runs:
        name = " ".join([str(one["seed"]), *one["settings"]])
        for number, night in enumerate(one["run"], 1):
            minutes = "–" if night["minutes"] is None else f"{night['minutes']:.0f}"
            shares = [f"{share:.2f}" for share in night["shares"]]
            p, decision = f"{night['p']:.2g}", night["decision"]
            nights.append([name, number, night["target"], *shares, p, decision, night["rounds"], minutes])
        for tier, found in one["tiers"].items():
            foods = (f"{found[who]:.2f}" for who in (*POLICIES, "student"))
            tiers.append([name, tier, *foods, f"{found['student'] / found['greedy']:.2f}", f"{found['valid']:.1%}"])
    columns = "seed | night | exam | champion | after the lesson | candidate | p of the rounds | decision | rounds"
    return "\n\n".join(
        [
            markdown(f"{columns} | minutes", nights),
            markdown("seed | tier | random | greedy | oracle | student | of the greedy ant's | valid actions", tiers),
        ]
    )


def exam(home: Path, checkpoint: str, tier: str) -> pd.DataFrame:
    """Return a checkpoint's episodes on a tier, which are kept in a file after they were played once."""
    kept = home / f"exam-{checkpoint}-{tier}.parquet"
    if not kept.exists():
        target = f"{{benchmark: ants, levels: ['{tier}'], problems: {LAYOUTS.get(tier, 30)}}}"
        arguments = ["--config", str(CONFIG), f"--set=exam={{target: {target}, max_completion_tokens: 16}}"]
        nightschool(home, "evaluate", checkpoint, *arguments, "--rows", str(kept))
    return pd.read_parquet(kept)


def figures(episodes: pd.DataFrame, tier: str) -> dict[str, float]:
    """Return the mean food of the other policies and of the student on an exam's layouts, and its valid actions."""
    game, rows = Ants((tier,)), episodes.to_dict("records")
    problems = [_problem(row, game) for row in rows]
    others = {
        name: fmean(outcome(game, problem, policy)["food"] for problem in problems) for name, policy in POLICIES.items()
    }
    valid = (episodes.valid * episodes.turns).sum() / episodes.turns.sum()
    return {**others, "student": fmean(delivered(row, game) for row in rows), "valid": float(valid)}


def delivered(row: dict[Any, Any], game: Ants) -> int:
    """Replay an episode of an exam, and return the food that it delivered."""
    last = replay(game, _problem(row, game), texts_of(row["text"]))[-1]
    return round(last.value * last.state["par"])


def _problem(row: dict[Any, Any], game: Ants) -> Problem:
    return Problem(row["problem_id"], game.name, "", "")


if __name__ == "__main__":
    main()
