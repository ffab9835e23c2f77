"""Nights on GSM8K, MATH and MBPP, on two cores: what the lesson brings, and what the rounds add to it.

    python -m benchmarks.real_data gsm8k math mbpp [--seeds 1 2 3] [--arm rounds]

Arms: `rounds` is the shipped configuration (conf/gsm8k.yaml, …); `l`, `lr`, `rlr` and `lrlr` are chains of lessons and
rounds at about equal tokens and minutes, by estimate. Two students, from before the first round and from the end, then
answer the target's whole test split greedily. To show smaller changes, they also answer 200 problems of the practised
levels 8 times each at temperature 1 (*mean@8*). Each finished night is a line in docs/real-data.jsonl and is not run
again; interrupted nights resume. Writes docs/real-data.png, and the tables between the markers in docs/real-data.md. If
`--seeds` names no seed, no night is run and just these files are written.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs.school import SCHOOL
from benchmarks.nights.whole import outcome, sampled, whole_night
from benchmarks.outputs.page import fill, markdown, picture
from benchmarks.outputs.power import mean_difference
from benchmarks.outputs.records import Run, flips, sampled_p, sweep
from conf.load import STARTER, load_night
from flows.run.history import read_round_metrics
from rewards.data.dataset_rows import DATA_VARIABLE

RESULTS, PICTURE, PAGE = (Path("docs/real-data").with_suffix(kind) for kind in (".jsonl", ".png", ".md"))
NAME = "benchmarks.real_data"
CONFIGS = {name: STARTER.with_name(f"{name}.yaml") for name in ("gsm8k", "math", "mbpp")}
ARMS = {
    "rounds": (),
    # 160 steps of lessons and 20 rounds in different orders, or about as many tokens of lessons alone
    "l": ("stages=[distill]", "budget_minutes=null", "distill.steps=420", "distill.max_epochs=3"),
    "lr": ("stages=[distill, {grpo: 20}]", "budget_minutes=null"),
    "rlr": ("stages=[{grpo: 10}, distill, {grpo: 10}]", "budget_minutes=null"),
    "lrlr": ("stages=[distill, {grpo: 10}, distill, {grpo: 10}]", "budget_minutes=null", "distill.steps=80"),
}
ROUNDS_LAST = ("rounds", "lr")  # in the other arms, lessons come after rounds, or there are no rounds
TRACES = "traces/math_reasoning_traces.jsonl"  # a larger model's solutions of MATH, if the data folder has them
PROBLEMS, SAMPLES = 200, 8


def main() -> None:
    """Run the missing nights, then write the picture and the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", choices=CONFIGS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--arm", choices=ARMS, default="rounds")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the nights")
    options = parser.parse_args()
    if runs := sweep(RESULTS, night, data=options.data, arm=[options.arm], seed=options.seeds, settings=[options.set]):
        draw(runs)
        fill(PAGE, NAME, f"{tables(runs)}\n\n![Mean reward by round]({PICTURE.name})")


def night(data: str, arm: str, seed: int, settings: Sequence[str]) -> Run:
    """Run a night and its exams. Returns its record: problems solved, flips, mean@8, rewards by round, minutes."""
    config = load_night(CONFIGS[data])
    every = [*ARMS[arm], *settings, f"seed={seed}", "exam.after_lessons=true"]
    traces = Path(os.environ.get(DATA_VARIABLE, ""), TRACES)
    if data == "math" and traces.is_file():
        every.append(f"distill.files=[{{source: {traces.resolve()}, benchmark: math, teacher: larger}}]")
    home = SCHOOL / "real-data" / "-".join([data, arm, str(seed), *(each.replace("/", " ") for each in settings)])
    found = whole_night(home, *every, config=CONFIGS[data])
    rounds = read_round_metrics(found["folder"])
    part: dict[str, Any] = {"benchmark": data, "problems": PROBLEMS, "samples": SAMPLES}
    if levels := config.benchmarks[0].levels:
        part["levels"] = list(levels)
    return {
        **outcome(found),
        **sampled(found, CONFIGS[data], part, config.exam.max_completion_tokens),
        "reward": [round(figures["reward"], 4) for figures in rounds],
        "signal": [round(figures["useful_groups"] / figures["groups"], 3) for figures in rounds],
    }


def tables(runs: Sequence[Run]) -> str:
    """Return two Markdown tables: all nights, and what rounds after the last lesson added, over all seeds."""
    return "\n\n".join(
        [
            markdown(
                "data | arm | seed | untouched | before the first round | at the end | mean@8 | rounds | groups with a "
                "signal, first and last five rounds | minutes, further exams included",
                map(_row, runs),
            ),
            markdown(
                "data | arm | seeds | test split: gained, lost | p | by seed | mean@8 by seed | p",
                _pooled([run for run in runs if run["arm"] in ROUNDS_LAST]),
            ),
        ]
    )


def _row(run: Run) -> list[Any]:
    solved = [
        f"{right} of {n} ({right / n:.1%})" for right, n in (run[who] for who in ("untouched", "before", "after"))
    ]
    signal = " → ".join(f"{np.mean(part):.2f}" for part in (run["signal"][:5], run["signal"][-5:]) if part)
    minutes = "–" if run["minutes"] is None else f"{run['minutes']:.0f}"
    mean = " → ".join(f"{share:.3f}" for share in run["mean_at_8"])
    return [*_kind(run), run["seed"], *solved, mean, len(run["reward"]), signal, minutes]


def _pooled(runs: Sequence[Run]) -> Iterator[list[Any]]:
    """Yield a row for each kind of night, with one-sided exact tests on the pairs of answers from all its seeds.

    These are about these students. The mean gains by seed have Student's 95 % interval.
    """
    for kind in dict.fromkeys(map(_kind, runs)):
        group = [run for run in runs if _kind(run) == kind]
        gained, lost, p = flips(group)
        greedy = [(run["gained"] - run["lost"]) / run["after"][1] for run in group]
        means = [after - before for before, after in (run["mean_at_8"] for run in group)]
        yield [
            *kind,
            len(group),
            f"{gained}, {lost}",
            f"{p:.2g}",
            mean_difference(greedy),
            mean_difference(means),
            f"{sampled_p(group):.2g}",
        ]


def _kind(run: Run) -> tuple[str, str]:
    return run["data"], ", ".join([run["arm"], *run["settings"]])


def draw(runs: Sequence[Run]) -> None:
    """Plot the mean reward of each night's rounds: a line for each seed, a colour for each kind of night."""
    with picture(PICTURE, 8, 3.6) as axes:
        for colour, kind in enumerate(dict.fromkeys(_kind(run) for run in runs if run["reward"])):
            for seed, reward in enumerate(run["reward"] for run in runs if _kind(run) == kind):
                label = "" if seed else ", ".join(kind)  # matplotlib: one entry in the legend for all seeds
                axes.plot(range(1, len(reward) + 1), reward, f"C{colour}", label=label)
        axes.set(xlabel="round", ylabel="share of sampled answers that is right")
        axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
        axes.legend(fontsize="small", ncols=3)


if __name__ == "__main__":
    main()
