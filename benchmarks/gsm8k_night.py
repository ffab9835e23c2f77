"""A night on real data: conf/gsm8k.yaml on two cores, with its exams, the rounds' own part, and curves.

    python -m benchmarks.gsm8k_night [--set KEY=VALUE …]

Runs the night in a home of its own, or reads it if it is finished. Prints the tables of docs/gsm8k-night.md, and writes
docs/gsm8k-night.png.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.machine.child import json_of
from flows.run.history import read_round_metrics
from tasks.tables import EVALUATIONS, read_table

CONFIG, DATE = "conf/gsm8k.yaml", "2026-01-01"
HOME = SCHOOL / "gsm8k-night"
PICTURE = Path("docs/gsm8k-night.png")
EXAMS = {"champion": "champion", "distilled": "whole-distilled", "candidate": "whole-candidate"}  # their folders
NAMES = {"champion": "untouched", "distilled": "after distillation", "candidate": "candidate"}


def main() -> None:
    """Run the night, write the picture and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the configuration")
    options = [f"--set={override}" for override in ("exam.after_lessons=true", *parser.parse_args().set)]
    environment = {"NIGHTSCHOOL_HOME": str(make(HOME).resolve())}
    json_of("flows", "night", "--json", "--config", CONFIG, "--date", DATE, *options, environment=environment)
    folder = HOME / "nights" / DATE
    rounds = read_round_metrics(folder)
    picture(rounds).savefig(PICTURE, dpi=110)
    print(tables(folder, rounds))


def tables(folder: Path, rounds: list[dict[str, float]]) -> str:
    """Return the exam of each model, the two comparisons, and what the rounds had to learn from.

    The untouched student answers only as many problems as the decision needs.
    """
    decision = json.loads((folder / "decide" / "decision.json").read_text())
    candidate, growth = decision["comparisons"]["candidate"][decision["target"]], decision["growth"]
    exams = {"champion": candidate["before"], "distilled": growth["before"], "candidate": growth["after"]}
    lines = [
        "| student | solved | 95 % interval | by calculations in the solution: 1, 2, 3, 4, 5 and more |",
        "|---|---|---|---|",
    ]
    for role, name in NAMES.items():
        exam = exams[role]
        solved = round(exam["accuracy"] * exam["n"])
        interval = f"{exam['low']:.1%} to {exam['high']:.1%}"
        lines.append(
            f"| {name} | {solved} of {exam['n']} ({exam['accuracy']:.1%}) | {interval} | {_levels(folder, role)} |"
        )
    lines += ["", "| from | to | difference | 95 % interval | p |", "|---|---|---|---|---|"]
    pairs = {"after distillation | candidate": growth, f"untouched | candidate, {candidate['n']} problems": candidate}
    for name, pair in pairs.items():
        interval = f"{pair['low']:+.3f} to {pair['high']:+.3f}"
        lines.append(f"| {name} | {pair['difference']:+.3f} | {interval} | {pair['p_value']:.2g} |")
    groups, useful = (sum(figures[key] for figures in rounds) for key in ("groups", "useful_groups"))
    lines += ["", f"{len(rounds)} rounds; {useful:.0f} of {groups:.0f} groups ({useful / groups:.0%}) had a signal."]
    return "\n".join(lines)


def _levels(folder: Path, role: str) -> str:
    table = read_table(folder / "evaluate" / EXAMS[role] / "evaluations.parquet", EVALUATIONS)
    correct = table.assign(correct=table.correct.fillna(False).astype(bool)).groupby("level").correct.mean()
    return ", ".join(f"{share:.1%}" for share in correct)


def picture(rounds: list[dict[str, Any]]) -> Figure:
    """Plot each round's mean reward and the share of its groups with a signal."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    numbers = range(1, len(rounds) + 1)
    axes.plot(
        numbers, [figures["useful_groups"] / figures["groups"] for figures in rounds], "o-", label="with a signal"
    )
    axes.plot(numbers, [figures["reward"] for figures in rounds], "o-", label="correct answers")
    axes.set(xlabel="round", ylabel="share", ylim=(0, 1))
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


if __name__ == "__main__":
    main()
