"""Starter nights in a row: does the model go on learning once it has mastered the first levels?

    python -m benchmarks.week [--nights 5] [--seeds 1] [--set grpo.hints=[0.25,0.5,0.75]]

The nights of conf/starter.yaml share a home under `school/week/` and have successive dates. Each begins with the newest
candidate that was ahead, and the target gets its next level by the usual rule (`exam.next_level_at`). Before the first
night and after each, the serving model is also examined on the same 700 problems of all five levels. Each week is a
line in docs/week.jsonl and is not run again; an interrupted one goes on. Writes the table in docs/performance.md, and
docs/week.png of the last recorded week.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.options import options
from benchmarks.inputs.school import SCHOOL
from benchmarks.machine.child import nightschool
from benchmarks.nights.whole import date_of, whole_night
from benchmarks.outputs.page import fill, joined, markdown, picture
from benchmarks.outputs.records import Run, sweep
from conf.load import STARTER
from conf.sections.benchmark import LEVELS

RESULTS, PICTURE = (Path("docs/week").with_suffix(kind) for kind in (".jsonl", ".png"))
PAGE, NAME = Path("docs/performance.md"), "benchmarks.week"
TARGET = "{benchmark: arithmetic, levels: ['1', '2', '3', '4', '5'], problems: 700}"
ALL_LEVELS = f"exam={{target: {TARGET}, max_completion_tokens: 96}}"


def main() -> None:
    """Run the missing weeks, then write the table and the picture."""
    given = options(__doc__, {"--nights": 5, "--seeds": [1], "--set": []})
    if runs := sweep(RESULTS, week, seed=given.seeds, nights=[given.nights], settings=[given.set]):
        fill(PAGE, NAME, table(runs))
        draw(runs[-1]["exams"])


def week(seed: int, nights: int, settings: Sequence[str]) -> Run:
    """Run a week's nights, and examine the serving model before the first and after each."""
    home = SCHOOL / "week" / "-".join([f"seed-{seed}", *settings]).replace("/", " ")
    done, exams = list[Run](), list[Run]()
    for number in range(nights):
        found = whole_night(home, f"seed={seed}", *settings, date=date_of(number))
        if number == 0:
            exams.append(exam(home, found["digests"]["champion"]))
        exams.append(exam(home, found["serving"]))
        kept = {name: found[name] for name in ("target", "decision", "rounds", "minutes")}
        done.append(kept | {"shares": [found["accuracy"][who]["accuracy"] for who in ("champion", "candidate")]})
    return {"run": done, "exams": exams}


def exam(home: Path, checkpoint: str) -> dict[str, Any]:
    """Return a checkpoint's figures in the exam on all levels, which are kept in a file after its only exam."""
    kept = home / f"exam-{checkpoint}.json"
    if not kept.exists():
        figures = nightschool(home, "evaluate", checkpoint, "--config", str(STARTER), f"--set={ALL_LEVELS}")
        kept.write_text(json.dumps(figures["arithmetic-1-2-3-4-5"]))
    return json.loads(kept.read_text())


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table of each week's nights, with the exams on all levels after them."""
    rows = []
    for run in runs:
        for number, (night, exam) in enumerate(zip(run["run"], run["exams"][1:], strict=True), 1):
            shares = [f"{share:.2f}" for share in night["shares"]]
            interval = f"{exam['accuracy']:.3f} [{exam['low']:.3f}, {exam['high']:.3f}]"
            levels = joined((exam["by_level"][level]["accuracy"] for level in LEVELS), ".2f")
            name = " ".join([str(run["seed"]), *(f"`{each}`" for each in run["settings"] if number == 1)])
            rows.append([name, number, *shares, night["decision"], night["rounds"], interval, levels])
    return markdown("seed | night | champion | candidate | decision | rounds | all levels | by level", rows)


def draw(exams: Sequence[Run]) -> None:
    """Plot the accuracy on all levels, with its 95 % interval, and on each level, before and after each night."""
    nights = range(len(exams))
    middle = [exam["accuracy"] for exam in exams]
    spread = [[exam["accuracy"] - exam["low"] for exam in exams], [exam["high"] - exam["accuracy"] for exam in exams]]
    with picture(PICTURE, 8, 4.2) as axes:
        axes.errorbar(nights, middle, spread, fmt="o-", capsize=3, linewidth=2.5, label="all levels")
        for level in LEVELS:
            axes.plot(nights, [exam["by_level"][level]["accuracy"] for exam in exams], ".--", label=f"level {level}")
        axes.set(xlabel="nights", ylabel="accuracy of the model that serves", ylim=(0, 1), xticks=[*nights])


if __name__ == "__main__":
    main()
