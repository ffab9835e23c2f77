"""Starter nights of the untouched student with several seeds: a table, and a picture of the learning curves.

    python -m benchmarks.starter_night --seeds 1 2 3 [--variant supervision]

The variant `at 2e-5` is the former recipe. `supervision` spends the minutes of the rounds on more worked solutions;
`instructions` also practises following instructions (`pip install -e '.[environments]'`). Each night has its own home
under `school/starter-night/`. Each finished night is a line in docs/starter-night.jsonl and is not run again on the
same kind of machine; interrupted nights resume. Writes the table in docs/performance.md, and docs/starter-night.png of
the shipped nights on the last machine. Two extra exams ask all problems, after the lessons and after the rounds; the
minutes do not include these.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from benchmarks.inputs.options import options
from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.whole import outcome, whole_night
from benchmarks.outputs.page import fill, markdown, picture
from benchmarks.outputs.power import mean_difference
from benchmarks.outputs.records import Run, by, flips, machine, ordered, sweep
from conf.storage.layout import MANIFEST
from flows.run.history import read_round_metrics
from tasks.evaluation.english import mean_nats
from tasks.tables import EVALUATIONS, read_table

RESULTS, PICTURE = (Path("docs/starter-night").with_suffix(kind) for kind in (".jsonl", ".png"))
PAGE, NAME = Path("docs/performance.md"), "benchmarks.starter_night"
HOMES = SCHOOL / "starter-night"
SHIPPED = "shipped"
WHOLE = ("whole-distilled", "whole-candidate")  # the folders of the exams on all problems
ARITHMETIC = {"name": "arithmetic", "levels": ["1", "2"]}
INSTRUCTIONS = {"name": "rewards.data.if_verifiable:IfVerifiable", "weight": 0.2}
VARIANTS = {
    SHIPPED: (),
    "at 2e-5": ("optimizer.learning_rate=2e-5",),
    # as many steps as fit into the minutes of the lesson and 24 rounds on two cores
    "supervision": ("stages=[distill]", "budget_minutes=null", "distill.steps=150", "day.generated_traces=2400"),
    "instructions": (f"benchmarks={json.dumps([ARITHMETIC, INSTRUCTIONS])}",),
}
EXAMS = {"untouched": "untouched", "before": "after\nthe lesson", "after": "after\nthe rounds"}


def main() -> None:
    """Run the missing nights, then write the picture and the table."""
    given = options(__doc__, {"--seeds": [1, 2, 3], "--variant": SHIPPED}, variant=VARIANTS)
    if runs := sweep(RESULTS, night, variant=[given.variant], seed=given.seeds, machine=[machine()]):
        shown = [run for run in runs if run["variant"] == SHIPPED]
        draw([run for run in shown if run["machine"] == shown[-1]["machine"]])
        fill(PAGE, NAME, table(runs))


def night(variant: str, seed: int, machine: str) -> Run:
    """Run a night on this machine. Returns its record; `minutes` excludes the exams on all problems."""
    home = HOMES / re.sub(r"\W+", "-", f"{variant} {seed} {machine}")
    found = whole_night(home, f"seed={seed}", "exam.after_lessons=true", *VARIANTS[variant])
    folder, growth, run = found["folder"], found["growth"], outcome(found)
    exams = [json.loads((folder / "evaluate" / exam / MANIFEST).read_text())["seconds"] for exam in WHOLE]
    quizzes = {
        file.parts[-3].removeprefix("round-"): read_table(file, EVALUATIONS).correct.mean()
        for file in sorted(folder.glob("round-*/quiz/evaluations.parquet"))
    }
    return run | {
        "minutes": run["minutes"] and run["minutes"] - sum(exams) / 60,
        "gain": [growth["difference"], growth["low"], growth["high"]],
        "decision": found["decision"],
        "guards": {
            name: [looks[role]["accuracy"] for role in ("champion", "candidate")]
            for name, looks in found["benchmarks"].items()
            if name != found["target"]
        },
        "english": [mean_nats(folder / "evaluate" / role) for role in ("champion", "candidate")],
        "reward": [round(figures["reward"], 4) for figures in read_round_metrics(folder)],
        "quizzes": quizzes,
    }


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table of the nights, and what the rounds brought by variant and machine.

    The one-sided exact test is about these students; the mean gain by seed has Student's 95 % interval.
    """
    runs = ordered(runs, variant=VARIANTS, machine=None, seed=None)
    head = "variant | machine | seed | untouched | after the lesson | after the rounds | what the rounds brought"
    rows = markdown(f"{head} | rounds | instructions | English, nats a token | decision | minutes", map(_row, runs))
    return "\n".join([rows, "", *_pooled(runs)])


def _row(run: Run) -> Iterator[Any]:
    yield from (run["variant"], _shorter(run["machine"]), run["seed"])
    yield from (f"{right / asked:.3f}" for right, asked in (run[exam] for exam in EXAMS))
    gain, low, high = run["gain"]
    yield from (f"{gain:+.3f} [{low:+.3f}, {high:+.3f}]", len(run["reward"]))
    for pair in (run["guards"].get("instructions", ()), run["english"]):
        yield " → ".join(f"{each:.2f}" for each in pair if each is not None) or "–"
    yield from (run["decision"], "–" if run["minutes"] is None else f"{run['minutes']:.1f}")


def _shorter(machine: str) -> str:
    return machine.removeprefix("AMD EPYC ").removesuffix(", 2 cores")


def _pooled(runs: Sequence[Run]) -> Iterator[str]:
    for (variant, on), same in by(runs, "variant", "machine").items():
        gained, lost, p = flips(same)
        gain = f"p = {p:.2g}; by seed {mean_difference([run['gain'][0] for run in same])}"
        yield f"- *{variant}*, {_shorter(on)}: the rounds gained {gained} answers, lost {lost} ({gain})."


def draw(runs: Sequence[Run]) -> None:
    """Plot each seed's mean reward by round, its quizzes, and its three exams with 95 % intervals."""
    with picture(PICTURE, 9, 4.2, columns=2) as (practice, exam):
        for run in runs:
            label = f"seed {run['seed']}"
            line = practice.plot(range(1, len(run["reward"]) + 1), run["reward"], label=label, alpha=0.8)
            practice.plot([*map(int, run["quizzes"])], [*run["quizzes"].values()], "o", color=line[0].get_color())
            shares = [right / asked for right, asked in (run[name] for name in EXAMS)]
            bounds = [binomtest(*run[name]).proportion_ci(method="wilson") for name in EXAMS]
            spread = [(share - each.low, each.high - share) for share, each in zip(shares, bounds, strict=True)]
            exam.errorbar(range(3), shares, [*zip(*spread, strict=True)], fmt="o-", capsize=3, label=label)
        practice.set(xlabel="round", ylabel="mean reward (line), quiz (dots)", ylim=(0, 1), title="During the night")
        exam.set(ylim=(0, 1), ylabel="accuracy, levels 1 and 2", title="The exam")
        exam.set_xticks(range(3), [*EXAMS.values()])


if __name__ == "__main__":
    main()
