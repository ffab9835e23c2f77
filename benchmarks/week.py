"""Five starter nights in a row: does the model go on learning once it has mastered the first levels?

    python -m benchmarks.week [--nights 5] [--seed 1]

The nights share a home under `school/week/`, on successive dates, as conf/starter.yaml has them: each begins from the
newest candidate that was ahead, and the target moves on by its rule. After each night the model that serves then is
also examined on all five levels, which stay the same (700 problems). Finished nights and exams are not run again.
Prints a table and writes docs/week.png.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.machine.child import json_of
from conf.sections.benchmark import LEVELS

FIRST = datetime.date(2026, 1, 1)
PICTURE = Path("docs/week.png")
TARGET = "{benchmark: arithmetic, levels: ['1', '2', '3', '4', '5'], problems: 700}"
ALL_LEVELS = f"exam={{target: {TARGET}, max_completion_tokens: 96}}"


def main() -> None:
    """Run the missing nights and exams, then print the table and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    home = make(SCHOOL / "week" / f"seed-{options.seed}")
    print("| night | target | champion | candidate | decision | rounds | minutes | all levels | by level |")
    print("|---|---|---|---|---|---|---|---|---|")
    exams: list[dict[str, Any]] = []
    for number in range(options.nights):
        date = (FIRST + datetime.timedelta(days=number)).isoformat()
        environment = {"NIGHTSCHOOL_HOME": str(home.resolve())}
        summary = json_of(
            "flows", "night", "--json", "--date", date, f"--set=seed={options.seed}", environment=environment
        )
        if number == 0:
            exams.append(exam(home, summary["digests"]["champion"]))
        exams.append(exam(home, summary["serving"]))
        print(row(number + 1, summary, exams[-1]), flush=True)
    picture(exams).savefig(PICTURE, dpi=110)


def exam(home: Path, checkpoint: str) -> dict[str, Any]:
    """Return a checkpoint's figures on all levels."""
    kept = home / f"exam-{checkpoint}.json"
    if not kept.exists():
        environment = {"NIGHTSCHOOL_HOME": str(home.resolve())}
        figures = json_of("flows", "evaluate", checkpoint, "--json", f"--set={ALL_LEVELS}", environment=environment)
        kept.write_text(json.dumps(figures["arithmetic-1-2-3-4-5"]))
    return json.loads(kept.read_text())


def row(number: int, summary: dict[str, Any], figures: dict[str, Any]) -> str:
    """Return a night as a row of the table."""
    before, after = (f"{summary['accuracy'][role]['accuracy']:.3f}" for role in ("champion", "candidate"))
    by_level = ", ".join(f"{figures['by_level'][level]['accuracy']:.2f}" for level in LEVELS)
    minutes = summary["wall_seconds"] / 60
    return (
        f"| {number} | {summary['target']} | {before} | {after} | {summary['decision']} | {summary['rounds']} | "
        f"{minutes:.1f} | {figures['accuracy']:.3f} | {by_level} |"
    )


def picture(exams: list[dict[str, Any]]) -> Figure:
    """Plot the accuracy on all levels, with its 95 % interval, and on each level, before and after each night."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    nights = range(len(exams))
    middle = [exam["accuracy"] for exam in exams]
    spread = [[exam["accuracy"] - exam["low"] for exam in exams], [exam["high"] - exam["accuracy"] for exam in exams]]
    axes.errorbar(nights, middle, spread, fmt="o-", capsize=3, linewidth=2.5, label="all levels")
    for level in LEVELS:
        axes.plot(nights, [exam["by_level"][level]["accuracy"] for exam in exams], ".--", label=f"level {level}")
    axes.set(xlabel="nights", ylabel="accuracy of the model that serves", ylim=(0, 1), xticks=[*nights])
    axes.grid(alpha=0.3)
    axes.legend(ncol=3)
    return figure


if __name__ == "__main__":
    main()
