"""Do three ants with one nest find more food than three times one ant, and do trails and signals pay?

    python -m benchmarks.colony [--seeds 1 2]

Nights of conf/ants.yaml on tier 1, each with the untouched student in a home of its own under `school/colony/`: one
ant, three ants, and three ants that can neither leave trails nor signal. Each model then plays the same 100 layouts of
the exam. An ant has equally many turns in all three. Prints a Markdown table: food per ant and layout. Finished nights
are not run again.
"""

import argparse
import json
from collections import Counter
from statistics import fmean
from typing import Any

import pandas as pd

from benchmarks.ants import CONFIG, delivered
from benchmarks.inputs.school import SCHOOL
from benchmarks.inputs.silent_ants import SilentColony
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import markdown
from rewards.environments.ants import Ants, parse
from rewards.environments.episodes import texts_of
from tasks.evaluation.statistics import bootstrap
from tasks.tables import EVALUATIONS, read_table

SILENT = "benchmarks.inputs.silent_ants:SilentColony"
KINDS: dict[str, tuple[str, dict[str, Any], Ants]] = {
    "one": ("ants", {"levels": ["1"]}, Ants(("1",))),
    "three": ("ants", {"levels": ["1"], "ants": 3}, Ants(("1",), ants=3)),
    "three, silent": (SILENT, {}, SilentColony()),
}


def main() -> None:
    """Run the missing nights, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    rows = [row(kind, seed) for seed in parser.parse_args().seeds for kind in KINDS]
    print(markdown("seed | ants | food per ant | valid | trails and signals, share of turns | decision | rounds", rows))


def row(kind: str, seed: int) -> list[Any]:
    """Run a night of one kind, and return its row."""
    name, choice, game = KINDS[kind]
    target = json.dumps({"benchmark": name, **choice, "problems": 100})
    practised = json.dumps([{"name": name, **choice}])
    home = SCHOOL / "colony" / f"{kind.replace(', ', '-')}-{seed}"
    exam = f'exam={{"target": {target}, "max_completion_tokens": 16}}'
    found = whole_night(home, f"seed={seed}", f"benchmarks={practised}", exam, config=CONFIG)
    exams = read_table(found["folder"] / "evaluate" / "candidate" / "evaluations.parquet", EVALUATIONS)
    food = [delivered(one, game) / game.ants for one in exams.to_dict("records")]
    low, high = bootstrap(pd.Series(food).to_numpy(), seed=seed)
    acts = Counter(act for text in exams.text for each in texts_of(text) for act, _ in parse(each) or [])
    shared = sum(acts[act] for act in ("DEPOSIT", "REINFORCE", "SIGNAL")) / exams.turns.sum()
    valid = (exams.valid * exams.turns).sum() / exams.turns.sum()
    means = [f"{fmean(food):.2f} [{low:.2f}, {high:.2f}]", f"{valid:.1%}", f"{shared:.1%}"]
    return [seed, kind, *means, found["decision"], found["rounds"]]


if __name__ == "__main__":
    main()
