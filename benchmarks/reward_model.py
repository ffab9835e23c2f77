"""How well does a reward model learn a known taste? Its accuracy on fresh picks, by backbone.

    python -m benchmarks.reward_model [--tastes short …] [--backbones starter 5M] [--seeds 1 2 3]

Fits a model to 200 picks as a night does, with a part of them held out, and evaluates it on fresh picks. A tenth of all
picks are random. The backbone is the starter, or a student of five million weights, trained from scratch for each seed.
Each fit is a line in docs/reward-model.jsonl and is not repeated. Writes the table in docs/reward-model.md.
"""

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import pandas as pd

from benchmarks.inputs.options import options
from benchmarks.inputs.pretrained import pretrained
from benchmarks.inputs.starter import starter
from benchmarks.inputs.tastes import Choice, Taste, attainable, picks
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.records import Run, by, ordered, sweep
from conf.schema import StudentConfig, TrainerConfig
from flows import environment
from models.lessons.preference_data import Pick
from models.lessons.ranking import Ranking, exact_interval, rank
from models.reward_model import RewardModel, fit
from tasks.reward_model.preferences import LONGEST, DayPicks, day_picks
from tasks.training.examples import ExampleReader

RESULTS, PAGE = (Path("docs/reward-model").with_suffix(kind) for kind in (".jsonl", ".md"))
NAME = "benchmarks.reward_model"
TASTES: tuple[Taste, ...] = ("short", "one sentence", "correct")
BACKBONES = ("starter", "5M")
PICKS, FRESH, NOISE = 200, 200, 0.1
STUDENT = StudentConfig(system="")  # as in the starter night
DATE = "2026-11-20"


def main() -> None:
    """Do the missing fits, and write the table of all."""
    given = options(__doc__, {"--tastes": TASTES, "--backbones": BACKBONES, "--seeds": [1, 2, 3]})
    environment.prepare()
    axes = {"taste": given.tastes, "backbone": given.backbones, "seed": given.seeds}
    if runs := sweep(RESULTS, fitted, **axes):
        fill(PAGE, NAME, table(runs))


def fitted(taste: Taste, backbone: str, seed: int) -> Run:
    """Fit a reward model to picks. Return how many held-out and fresh picks of the same taste it ranks right."""
    folder = starter() if backbone == "starter" else pretrained(backbone, seed)
    day = _read(picks(taste, PICKS, f"picks {seed}", noise=NOISE), folder)
    started = time.perf_counter()
    model = fit(folder, day.fitted, TrainerConfig(seed=seed))
    seconds = time.perf_counter() - started
    held_out = _ranking(model, day.held_out)
    seen = {pick.prompt for pick in (*day.fitted, *day.held_out)}
    others = _read(picks(taste, 4 * FRESH, f"fresh {seed}", noise=NOISE), folder)
    unseen = [pick for pick in (*others.fitted, *others.held_out) if pick.prompt not in seen][:FRESH]
    looks = {"held_out": held_out, "fresh": _ranking(model, unseen)}
    right = {name: [look.accuracy.value * look.accuracy.n, look.accuracy.n] for name, look in looks.items()}
    return {"fitted": len(day.fitted), "seconds": seconds, "serves": held_out.refusal is None, **right}


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: how many picks a model ranks right, with the exact 95 % interval over all seeds.

    `used`: on how many seeds a night would have used the model.
    """
    rows = []
    for (taste, backbone), same in by(ordered(runs, taste=TASTES, backbone=BACKBONES), "taste", "backbone").items():
        shown = [_accuracy([run[look] for run in same]) for look in ("held_out", "fresh")]
        used = f"{sum(run['serves'] for run in same)} of {len(same)}"
        rows.append([taste, backbone, *shown, used, f"{fmean(run['seconds'] for run in same):.0f}"])
    best = attainable("short", NOISE)
    head = f"taste | backbone | held-out picks | fresh picks (attainable: {best:.2f}) | used | seconds of the fit"
    return markdown(head, rows)


def _accuracy(looks: Sequence[tuple[float, int]]) -> str:
    """Return the share of picks that is right, with its interval. `looks`: picks that are right, and all, by seed."""
    found = exact_interval(sum(right for right, _ in looks), sum(asked for _, asked in looks))
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}] of {found.n}"


def _read(drawn: Iterable[Choice], backbone: Path) -> DayPicks:
    """Read the picks as those of a frozen day."""
    rows = [
        {
            "messages": json.dumps(pick.messages),
            "responses": json.dumps(pick.responses),
            "chosen": pick.chosen,
            "held_out": pick.held_out,
            **{"day": DATE, "lesson": "", "source": "", "unfinished": None},
        }
        for pick in drawn
    ]
    return day_picks({"preferences": pd.DataFrame(rows)}, DATE, ExampleReader(backbone, STUDENT, (), LONGEST))


def _ranking(model: RewardModel, picks: Sequence[Pick]) -> Ranking:
    return rank(model.judge([(pick.prompt, pick.answers) for pick in picks]), picks)


if __name__ == "__main__":
    main()
