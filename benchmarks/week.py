"""Five starter nights in a row: does the model go on learning once it has mastered the first levels?

    python -m benchmarks.week [--nights 5] [--seed 1]

The nights of conf/starter.yaml share a home under `school/week/` and have successive dates. Each begins with the newest
candidate that was ahead, and the target gets its next level by the usual rule (`exam.next_level_at`). After each night,
the serving model is also examined on the same 700 problems of all five levels. Finished nights and exams are not run
again. Prints a table and writes docs/week.png.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

from benchmarks.inputs.school import SCHOOL
from benchmarks.machine.child import json_of
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import joined, markdown, picture
from conf.load import STARTER
from conf.sections.benchmark import LEVELS

FIRST = datetime.date(2026, 1, 1)
PICTURE = Path("docs/week.png")
TARGET = "{benchmark: arithmetic, levels: ['1', '2', '3', '4', '5'], problems: 700}"
COLUMNS = "night | target | champion | candidate | decision | rounds | minutes | all levels | by level"
ALL_LEVELS = f"exam={{target: {TARGET}, max_completion_tokens: 96}}"


def main() -> None:
    """Run the missing nights and exams, then print the table and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    home, rows, exams = SCHOOL / "week" / f"seed-{options.seed}", [], []
    for number in range(options.nights):
        date = (FIRST + datetime.timedelta(days=number)).isoformat()
        summary = whole_night(home, f"seed={options.seed}", date=date)
        if number == 0:
            exams.append(exam(home, summary["digests"]["champion"]))
        exams.append(exam(home, summary["serving"]))
        rows.append(row(number + 1, summary, exams[-1]))
    print(markdown(COLUMNS, rows))
    draw(exams)


def exam(home: Path, checkpoint: str) -> dict[str, Any]:
    """Return a checkpoint's figures in the exam on all levels, which are kept in a file after its only exam."""
    kept = home / f"exam-{checkpoint}.json"
    if not kept.exists():
        environment = {"NIGHTSCHOOL_HOME": str(home.resolve())}
        options = ["--config", str(STARTER), "--json", f"--set={ALL_LEVELS}"]
        figures = json_of("flows", "evaluate", checkpoint, *options, environment=environment)
        kept.write_text(json.dumps(figures["arithmetic-1-2-3-4-5"]))
    return json.loads(kept.read_text())


def row(number: int, summary: dict[str, Any], figures: dict[str, Any]) -> list[Any]:
    """Return a night as a row of the table."""
    before, after = (f"{summary['accuracy'][role]['accuracy']:.3f}" for role in ("champion", "candidate"))
    by_level = joined((figures["by_level"][level]["accuracy"] for level in LEVELS), ".2f")
    outcome = [summary["decision"], summary["rounds"], f"{summary['wall_seconds'] / 60:.1f}"]
    return [number, summary["target"], before, after, *outcome, f"{figures['accuracy']:.3f}", by_level]


def draw(exams: list[dict[str, Any]]) -> None:
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
