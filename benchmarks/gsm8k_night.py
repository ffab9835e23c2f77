"""A night on real data: conf/gsm8k.yaml on two cores, its exams, what the rounds added, and curves.

    python -m benchmarks.gsm8k_night [--set KEY=VALUE …]

Runs the night in its own home, or reads it if it is finished. Prints the tables of docs/gsm8k-night.md, and writes
docs/gsm8k-night.png.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import joined, markdown, picture
from flows.run.history import read_round_metrics
from tasks.tables import EVALUATIONS, read_table

CONFIG = Path("conf/gsm8k.yaml")
PICTURE = Path("docs/gsm8k-night.png")
EXAMS = {"champion": "champion", "distilled": "whole-distilled", "candidate": "whole-candidate"}  # their folders
NAMES = {"champion": "untouched", "distilled": "after distillation", "candidate": "candidate"}


def main() -> None:
    """Run the night, write the picture and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the night")
    settings = ("exam.after_lessons=true", *parser.parse_args().set)
    folder = whole_night(SCHOOL / "gsm8k-night", *settings, config=CONFIG)["folder"]
    rounds = read_round_metrics(folder)
    draw(rounds)
    print(tables(folder, rounds))


def tables(folder: Path, rounds: list[dict[str, float]]) -> str:
    """Return the exam of each model, the two comparisons, and what the rounds had to learn from.

    The untouched student answers only as many problems as the decision needs.
    """
    decision = json.loads((folder / "decide" / "decision.json").read_text())
    candidate, growth = decision["comparisons"]["candidate"][decision["target"]], decision["growth"]
    exams = {"champion": candidate["before"], "distilled": growth["before"], "candidate": growth["after"]}
    students, gains = [], []
    for role, exam in exams.items():
        solved = f"{round(exam['accuracy'] * exam['n'])} of {exam['n']} ({exam['accuracy']:.1%})"
        students.append([NAMES[role], solved, f"{exam['low']:.1%} to {exam['high']:.1%}", _by_level(folder, role)])
    for name, pair in (("after distillation", growth), (f"untouched, {candidate['n']} problems", candidate)):
        interval = f"{pair['low']:+.3f} to {pair['high']:+.3f}"
        gains.append([name, f"{pair['difference']:+.3f}", interval, f"{pair['p_value']:.2g}"])
    groups, useful = (sum(figures[key] for figures in rounds) for key in ("groups", "useful_groups"))
    return "\n\n".join(
        [
            markdown("student | solved | 95 % interval | by calculations: 1, 2, 3, 4, 5 and more", students),
            markdown("candidate against | difference | 95 % interval | p", gains),
            f"{len(rounds)} rounds; {useful:.0f} of {groups:.0f} groups ({useful / groups:.0%}) had a signal.",
        ]
    )


def _by_level(folder: Path, role: str) -> str:
    table = read_table(folder / "evaluate" / EXAMS[role] / "evaluations.parquet", EVALUATIONS)
    return joined(table.assign(correct=table.correct.fillna(False).astype(bool)).groupby("level").correct.mean(), ".1%")


def draw(rounds: list[dict[str, Any]]) -> None:
    """Plot each round's mean reward and the share of its groups with a signal."""
    numbers = range(1, len(rounds) + 1)
    with picture(PICTURE, 8, 3.4) as axes:
        signal = [figures["useful_groups"] / figures["groups"] for figures in rounds]
        axes.plot(numbers, signal, "o-", label="with a signal")
        axes.plot(numbers, [figures["reward"] for figures in rounds], "o-", label="correct answers")
        axes.set(xlabel="round", ylabel="share", ylim=(0, 1))


if __name__ == "__main__":
    main()
