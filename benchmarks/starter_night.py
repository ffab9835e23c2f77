"""Starter nights with several seeds, from the untouched student: a table, and the learning curves as a picture.

    python -m benchmarks.starter_night --seeds 1 2 3 [--variant supervision]

The variant `supervision` spends the minutes of the rounds on further worked solutions, never seen before; `forgetful`
learns its lesson without rehearsal. Each night has its own home under `school/starter-night/`; finished nights are not
run again, so an interrupted call resumes. Prints the tables of docs/performance.md, and, of the shipped nights, writes
docs/starter-night.png. After the lessons and after the rounds all problems of the exam are asked; the minutes are those
of a night without these two exams.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.machine.child import json_of
from conf.storage.home import SUMMARY
from conf.storage.layout import MANIFEST
from flows.run.history import read_round_metrics
from tasks.evaluation.english import mean_nats
from tasks.tables import EVALUATIONS, read_table

HOMES = SCHOOL / "starter-night"
SHIPPED = "shipped"
WHOLE = ("whole-distilled", "whole-candidate")  # the folders of the exams on all problems
VARIANTS = {
    SHIPPED: (),
    # as many steps as take the minutes of the lesson and of 24 rounds on two cores
    "supervision": ("stages=[distill]", "distill.steps=150", "day.generated_traces=2400", "budget_minutes=null"),
    "forgetful": ("distill.rehearsal=0", "distill.batch_size=16"),
}
PICTURE = Path("docs/starter-night.png")


def main() -> None:
    """Run the missing nights, then print the tables and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--variant", choices=VARIANTS, default=SHIPPED)
    options = parser.parse_args()
    nights = {seed: night(seed, options.variant) for seed in options.seeds}
    if options.variant == SHIPPED:
        picture(nights).savefig(PICTURE, dpi=110)
    print(tables(nights))


def night(seed: int, variant: str) -> dict[str, Any]:
    """Return the summary of a seed's night, with its minutes; None if it was interrupted."""
    home = make(HOMES) / f"{'' if variant == SHIPPED else f'{variant}-'}seed-{seed}"
    minutes = home / "minutes.txt"
    begun, started = home.exists(), time.monotonic()
    options = [f"--set={setting}" for setting in (f"seed={seed}", "exam.after_lessons=true", *VARIANTS[variant])]
    summary = json_of(
        "flows", "night", "--json", "--date", "2026-01-01", *options, environment={"NIGHTSCHOOL_HOME": str(home)}
    )
    if not begun:
        took = time.monotonic() - started
        minutes.write_text(str((took - sum(_seconds(home, summary["night"], name) for name in WHOLE)) / 60))
    took = float(minutes.read_text()) if minutes.exists() else None
    return summary | {"minutes": took, "home": home}


def tables(nights: dict[int, dict[str, Any]]) -> str:
    """Return where the nights ran, and the tables of the exam and of the guards."""
    rows = "\n".join(_row(seed, found) for seed, found in nights.items())
    first = next(iter(nights.values()))
    examined = max((found["benchmarks"] for found in nights.values()), key=len)
    parts = [name for name in examined if name != first["target"]]
    guards = "\n".join(_guards(seed, found, parts) for seed, found in nights.items())
    return f"""{len(os.sched_getaffinity(0))} cores ({platform.machine()})

| seed | base | after distillation | candidate | GRPO's part | decision | rounds | distilled by minute | minutes |
|---|---|---|---|---|---|---|---|---|
{rows}

| seed | {" | ".join(parts)} | English, nats a token |
|---|{"---|" * len(parts)}---|
{guards}
"""


def picture(nights: dict[int, dict[str, Any]]) -> Figure:
    """Plot the mean reward of every round, the quizzes and the three exams, for each seed."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for seed, found in nights.items():
        folder = found["home"] / "nights" / found["night"]
        rewards = [metrics["reward"] for metrics in read_round_metrics(folder)]
        line = axes[0].plot(range(1, len(rewards) + 1), rewards, label=f"seed {seed}", alpha=0.8)
        quizzes = {
            int(file.parts[-3].removeprefix("round-")): read_table(file, EVALUATIONS).correct.mean()
            for file in sorted(folder.glob("round-*/quiz/evaluations.parquet"))
        }
        axes[0].plot(list(quizzes), list(quizzes.values()), "o", color=line[0].get_color())
        accuracies = _accuracies(found)
        middle = [a["accuracy"] for a in accuracies]
        spread = [[a["accuracy"] - a["low"] for a in accuracies], [a["high"] - a["accuracy"] for a in accuracies]]
        axes[1].errorbar(range(3), middle, spread, fmt="o-", capsize=3, label=f"seed {seed}")
    axes[0].set(xlabel="round", ylabel="mean reward (line), quiz (dots)", ylim=(0, 1), title="During the night")
    axes[1].set(ylim=(0, 1), ylabel="accuracy, levels 1 and 2", title="The exam")
    axes[1].set_xticks(range(3), ["base", "after\ndistillation", "candidate"])
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend()
    return figure


def _row(seed: int, found: dict[str, Any]) -> str:
    accuracy = " | ".join(f"{one['accuracy']:.3f}" for one in _accuracies(found))
    growth = found["growth"]
    part = f"{growth['difference']:+.3f} [{growth['low']:+.3f}, {growth['high']:+.3f}]"
    minutes = "interrupted | interrupted"
    if found["minutes"] is not None:
        folder = found["home"] / "nights" / found["night"]
        after = -sum(_seconds(found["home"], found["night"], name) for name in WHOLE)
        after += (folder / SUMMARY).stat().st_mtime - (folder / "distill" / MANIFEST).stat().st_mtime
        minutes = f"{found['minutes'] - after / 60:.1f} | {found['minutes']:.1f}"
    return f"| {seed} | {accuracy} | {part} | {found['decision']} | {found['rounds']} | {minutes} |"


def _accuracies(found: dict[str, Any]) -> list[dict[str, float]]:
    """Return the accuracies of the three students: the untouched one's in as many problems as the exam took."""
    return [found["accuracy"]["champion"], found["growth"]["before"], found["growth"]["after"]]


def _seconds(home: Path, date: str, exam: str) -> float:
    return json.loads((home / "nights" / date / "evaluate" / exam / MANIFEST).read_text())["seconds"]


def _guards(seed: int, found: dict[str, Any], parts: list[str]) -> str:
    """Return a night's guards as a row: they are examined only of a candidate that is better."""
    roles, exams = ("champion", "candidate"), found["home"] / "nights" / found["night"] / "evaluate"
    cells = [
        " → ".join(f"{found['benchmarks'][part][role]['accuracy']:.2f}" for role in roles)
        if part in found["benchmarks"]
        else "–"
        for part in parts
    ]
    nats = [known for role in roles if (known := mean_nats(exams / role)) is not None]
    cells.append(" → ".join(f"{each:.2f}" for each in nats) or "–")
    return f"| {seed} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
