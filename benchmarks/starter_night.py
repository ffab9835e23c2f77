"""Starter nights of the untouched student with several seeds: tables, and a picture of the learning curves.

    python -m benchmarks.starter_night --seeds 1 2 3 [--variant supervision]

The variant `supervision` spends the minutes of the rounds on more worked solutions; `forgetful` learns its lesson
without rehearsal; `instructions` also practises following instructions (needs `pip install .[environments]`). Each
night has its own home under `school/starter-night/`. Finished nights are not run again, so an interrupted call resumes.
Prints the tables of docs/performance.md and, for nights without a variant, writes docs/starter-night.png. Two extra
exams ask all problems, after the lessons and after the rounds; the minutes do not include these.
"""

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import markdown, picture
from conf.storage.home import SUMMARY
from conf.storage.layout import MANIFEST
from flows.run.history import read_round_metrics
from tasks.evaluation.english import mean_nats
from tasks.tables import EVALUATIONS, read_table

HOMES = SCHOOL / "starter-night"
SHIPPED = "shipped"
WHOLE = ("whole-distilled", "whole-candidate")  # the folders of the exams on all problems
ARITHMETIC = {"name": "arithmetic", "levels": ["1", "2"]}
INSTRUCTIONS = {"name": "rewards.data.if_verifiable:IfVerifiable", "weight": 0.2}
VARIANTS = {
    SHIPPED: (),
    # as many steps as fit into the minutes of the lesson and 24 rounds on two cores
    "supervision": ("stages=[distill]", "distill.steps=150", "day.generated_traces=2400", "budget_minutes=null"),
    "forgetful": ("distill.rehearsal=0", "distill.batch_size=16"),
    "instructions": (f"benchmarks={json.dumps([ARITHMETIC, INSTRUCTIONS])}",),
}
PICTURE = Path("docs/starter-night.png")
COLUMNS = (
    "seed | base | after distillation | candidate | GRPO's part | decision | rounds | distilled by minute | minutes"
)


def main() -> None:
    """Run the missing nights, then write the picture and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--variant", choices=VARIANTS, default=SHIPPED)
    options = parser.parse_args()
    nights = {seed: night(seed, options.variant) for seed in options.seeds}
    if options.variant == SHIPPED:
        draw(nights)
    print(tables(nights))


def night(seed: int, variant: str) -> dict[str, Any]:
    """Run a seed's night unless it is finished. Returns its summary; `minutes` excludes the exams on all problems."""
    home = HOMES / f"{'' if variant == SHIPPED else f'{variant}-'}seed-{seed}"
    found = whole_night(home, f"seed={seed}", "exam.after_lessons=true", *VARIANTS[variant])
    exams = [json.loads((found["folder"] / "evaluate" / exam / MANIFEST).read_text())["seconds"] for exam in WHOLE]
    found["exam_minutes"] = sum(exams) / 60
    if found["minutes"] is not None:
        found["minutes"] -= found["exam_minutes"]
    return found


def tables(nights: dict[int, dict[str, Any]]) -> str:
    """Return the machine's number of cores, and Markdown tables of the exam and of the guards."""
    first = next(iter(nights.values()))
    examined = max((list(found["benchmarks"]) for found in nights.values()), key=len)
    parts = [name for name in examined if name != first["target"]]
    return "\n\n".join(
        [
            f"{len(os.sched_getaffinity(0))} cores ({platform.machine()})",
            markdown(COLUMNS, (_row(seed, found) for seed, found in nights.items())),
            markdown(
                " | ".join(["seed", *parts, "English, nats a token"]),
                (_guards(seed, found, parts) for seed, found in nights.items()),
            ),
        ]
    )


def draw(nights: dict[int, dict[str, Any]]) -> None:
    """Plot each seed's mean reward by round, its quizzes, and its three exams."""
    with picture(PICTURE, 9, 4.2, columns=2) as (practice, exam):
        for seed, found in nights.items():
            rewards = [metrics["reward"] for metrics in read_round_metrics(found["folder"])]
            line = practice.plot(range(1, len(rewards) + 1), rewards, label=f"seed {seed}", alpha=0.8)
            quizzes = {
                int(file.parts[-3].removeprefix("round-")): read_table(file, EVALUATIONS).correct.mean()
                for file in sorted(found["folder"].glob("round-*/quiz/evaluations.parquet"))
            }
            practice.plot(list(quizzes), list(quizzes.values()), "o", color=line[0].get_color())
            accuracies = _accuracies(found)
            middle = [a["accuracy"] for a in accuracies]
            spread = [[a["accuracy"] - a["low"] for a in accuracies], [a["high"] - a["accuracy"] for a in accuracies]]
            exam.errorbar(range(3), middle, spread, fmt="o-", capsize=3, label=f"seed {seed}")
        practice.set(xlabel="round", ylabel="mean reward (line), quiz (dots)", ylim=(0, 1), title="During the night")
        exam.set(ylim=(0, 1), ylabel="accuracy, levels 1 and 2", title="The exam")
        exam.set_xticks(range(3), ["base", "after\ndistillation", "candidate"])


def _row(seed: int, found: dict[str, Any]) -> list[Any]:
    growth = found["growth"]
    part = f"{growth['difference']:+.3f} [{growth['low']:+.3f}, {growth['high']:+.3f}]"
    minutes = ["interrupted", "interrupted"]
    if found["minutes"] is not None:
        ends = [(found["folder"] / name).stat().st_mtime for name in (SUMMARY, f"distill/{MANIFEST}")]
        after = (ends[0] - ends[1]) / 60 - found["exam_minutes"]
        minutes = [f"{found['minutes'] - after:.1f}", f"{found['minutes']:.1f}"]
    accuracies = [f"{each['accuracy']:.3f}" for each in _accuracies(found)]
    return [seed, *accuracies, part, found["decision"], found["rounds"], *minutes]


def _accuracies(found: dict[str, Any]) -> list[dict[str, float]]:
    """Return three accuracies: before the night (in its exam), after lessons, after rounds (on all problems)."""
    return [found["accuracy"]["champion"], found["growth"]["before"], found["growth"]["after"]]


def _guards(seed: int, found: dict[str, Any], parts: list[str]) -> list[Any]:
    """Return a night's guards as a row, with dashes where the candidate was not good enough to be examined."""
    roles, exams = ("champion", "candidate"), found["folder"] / "evaluate"
    cells = [
        " → ".join(f"{found['benchmarks'][part][role]['accuracy']:.2f}" for role in roles)
        if part in found["benchmarks"]
        else "–"
        for part in parts
    ]
    nats = [known for role in roles if (known := mean_nats(exams / role)) is not None]
    return [seed, *cells, " → ".join(f"{each:.2f}" for each in nats) or "–"]


if __name__ == "__main__":
    main()
