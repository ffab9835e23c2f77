"""How small can a student be for reward to teach it? Students trained from scratch, with a lesson and without.

    python -m benchmarks.floor [--sizes 1M 5M 15M] [--seeds 1 2 3] [--arms lesson none]

Each size is pretrained once per seed, on a million tokens of generated texts (`nightschool pretrain`). Then a night of
conf/small.yaml with fixed numbers of steps and rounds teaches sums of one step: in the arm `lesson`, a lesson comes
before the rounds (at 49M, there are none); in `none`, the rounds begin with a student that was never shown a solution
in the form that the exam asks for. A severe alarm ends the rounds early. Each night is a line in docs/floor.jsonl and
is not run again; what was interrupted goes on. The students from before and after the rounds also answer each problem
of the exam 16 times at temperature 1 (*mean@16*), as they do in the rounds. Writes docs/floor.png, and the table
between the markers in docs/floor.md. `--seeds` without a seed only writes these.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.inputs.options import options
from benchmarks.inputs.pretrained import pretrained
from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.whole import outcome, sampled, whole_night
from benchmarks.outputs.page import fill, markdown, picture
from benchmarks.outputs.power import detectable_mean, mean_difference
from benchmarks.outputs.records import Run, by, flips, ordered, sampled_p, sweep
from conf.load import STARTER
from conf.schema import NEW_SIZES
from flows.run.history import read_round_metrics
from tasks.evaluation.statistics import mcnemar
from tasks.pretraining.pretrain import CURVE

RESULTS, PICTURE, PAGE = (Path("docs/floor").with_suffix(kind) for kind in (".jsonl", ".png", ".md"))
CONFIG = STARTER.with_name("small.yaml")
RATES = {"1M": (2e-3, 3e-4), "5M": (1e-3, 2e-4), "15M": (6e-4, 1e-4), "49M": (4e-4, 5e-5)}  # of lesson and rounds
LARGE = ("grpo.prompts_per_round=96", "grpo.group_size=16")  # answers of a small student cost next to nothing
EXAM = {"benchmark": "arithmetic", "levels": ["1"], "samples": 16}
ARMS = {"lesson": "stages=[distill, {grpo: 60}]", "none": "stages=[{grpo: 20}]"}  # without a right answer, no update


def main() -> None:
    """Run what is missing, then write the picture and the table."""
    given = options(__doc__, {"--sizes": ["1M", "5M", "15M"], "--seeds": [1, 2, 3], "--arms": ARMS}, sizes=NEW_SIZES)
    if runs := sweep(RESULTS, night, size=given.sizes, seed=given.seeds, arm=given.arms):
        draw(runs)
        fill(PAGE, "benchmarks.floor", f"{table(runs)}\n\n![Solved]({PICTURE.name})")


def night(size: str, seed: int, arm: str) -> Run:
    """Pretrain the student if it is missing, run a night with it, and return the night's record."""
    student, (lesson, rounds) = pretrained(size, seed), RATES[size]
    stages = "stages=[distill]" if (size, arm) == ("49M", "lesson") else ARMS[arm]  # there, a round takes minutes
    settings = [stages, f"student.source={student}", f"seed={seed}", "budget_minutes=null", *LARGE]
    settings += [f"distill.learning_rate={lesson}", f"optimizer.learning_rate={rounds}", "exam.after_lessons=true"]
    found = whole_night(SCHOOL / "floor" / f"{size}-{arm}-{seed}", *settings, config=CONFIG)
    curve = (student / CURVE).read_text().splitlines()
    return {
        **outcome(found),
        **sampled(found, CONFIG, EXAM, 48),
        "rounds": found["rounds"],
        "pretrained": sum(json.loads(line)["loss"] for line in curve[-20:]) / len(curve[-20:]),
        "reward": [round(figures["reward"], 4) for figures in read_round_metrics(found["folder"])],
    }


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table of all nights, and what the rounds changed over all seeds.

    `practised`: the mean reward of the first and of the last ten rounds.
    """
    runs = ordered(runs, size=NEW_SIZES, arm=ARMS, seed=None)
    columns = "size | seed | arm | pretraining loss, nats | untouched | before the rounds | after | p"
    columns += " | mean@16 | rounds | practised | minutes"
    return "\n".join([markdown(columns, map(_row, runs)), "", *_pooled(runs)])


def _row(run: Run) -> list[Any]:
    shares = [f"{right / n:.3f}" for right, n in (run[when] for when in ("untouched", "before", "after"))]
    p, minutes = mcnemar(run["gained"], run["lost"]), run["minutes"]
    known = [run["size"], run["seed"], run["arm"], f"{run['pretrained']:.2f}"]
    mean = "{:.3f} → {:.3f}".format(*run["mean_at_16"])
    rewards = run["reward"]
    practised = f"{fmean(rewards[:10]):.2f} → {fmean(rewards[-10:]):.2f}" if rewards else "–"
    return [*known, *shares, f"{p:.2g}", mean, run["rounds"], practised, "–" if minutes is None else f"{minutes:.0f}"]


def _pooled(runs: Sequence[Run]) -> Iterator[str]:
    """Yield, by size and arm, what the rounds changed: greedy answers gained and lost, and the shares of sampled ones.

    The one-sided exact tests are about these students; the mean gains by seed have Student's 95 % interval, and the
    smallest gain that would be detected.
    """
    for (size, arm), same in by([run for run in runs if run["rounds"]], "size", "arm").items():
        gained, lost, p = flips(same)
        greedy = [(run["gained"] - run["lost"]) / run["after"][1] for run in same]
        means = [after - before for before, after in (run["mean_at_16"] for run in same)]
        yield f"- {size}, *{arm}*: {gained} answers gained, {lost} lost (p = {p:.2g}; by seed {_by_seed(greedy)});"
        yield f"  mean@16 by seed {_by_seed(means)} (p = {sampled_p(same):.2g})."


def _by_seed(gains: Sequence[float]) -> str:
    least = detectable_mean(np.array(gains), 0.05)
    return mean_difference(gains) + ("" if least is None else f", {least:+.3f} would be detected")


def draw(runs: Sequence[Run]) -> None:
    """Plot what each student solves before (×) and after (●) the rounds, greedily; seeds side by side."""
    with picture(PICTURE, 7, 4) as axes:
        for colour, (arm, own) in enumerate(by(runs, "arm").items()):
            places = [float(run["size"][:-1]) * 1.08 ** (run["seed"] - 2) for run in own]
            before, after = ([run[when][0] / run[when][1] for run in own] for when in ("before", "after"))
            axes.vlines(places, before, after, color=f"C{colour}")
            axes.scatter(places, before, marker="x", color=f"C{colour}", label=f"{arm[0]}: before the rounds")
            axes.scatter(places, after, marker="o", color=f"C{colour}", label=f"{arm[0]}: after the rounds")
        sizes = [size for size in NEW_SIZES if size in {run["size"] for run in runs}]
        axes.set(xscale="log", xlabel="weights", ylabel="solved of the exam", ylim=(-0.02, 1))
        axes.set_xticks([float(size[:-1]) for size in sizes], sizes, minor=False)
        axes.set_xticks([], minor=True)


if __name__ == "__main__":
    main()
