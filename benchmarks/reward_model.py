"""How well does a reward model learn a known taste? Its accuracy on fresh picks.

    python -m benchmarks.reward_model --taste short --picks 200 [--noise 0.1] [--backbone FOLDER]

Fits as a night does, with a part of the picks held out, and evaluates the model on fresh picks. The default backbone is
the starter. Prints one JSON object.
"""

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from benchmarks.inputs.starter import STARTER, starter
from benchmarks.inputs.tastes import Choice, Taste, attainable, picks
from conf.schema import StudentConfig, TrainerConfig
from flows import environment
from models.lessons.preference_data import Pick
from models.lessons.ranking import Ranking, rank
from models.reward_model import RewardModel, fit
from tasks.reward_model.preferences import LONGEST, DayPicks, day_picks
from tasks.training.examples import ExampleReader

STUDENT = StudentConfig(system="")  # as in the starter night
DATE = "2026-11-20"


def main() -> None:
    """Fit and evaluate one reward model, and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taste", choices=get_args(Taste), default="short")
    parser.add_argument("--picks", type=int, default=200, help="including the held-out ones")
    parser.add_argument("--fresh", type=int, default=500, help="picks for the final evaluation")
    parser.add_argument("--noise", type=float, default=0.0, help="share of the picks made at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backbone", type=Path, default=STARTER)
    options = parser.parse_args()
    environment.prepare()
    starter(options.backbone)
    print(json.dumps({name: str(value) for name, value in vars(options).items()} | measure(options)))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fit a reward model to picks. Return its accuracy on held-out and on fresh picks of the same taste and noise."""
    trainer = TrainerConfig(seed=options.seed)
    drawn = picks(options.taste, options.picks, f"picks {options.seed}", noise=options.noise)
    day = _read(drawn, options.backbone)
    started = time.perf_counter()
    model = fit(options.backbone, day.fitted, trainer)
    seconds = time.perf_counter() - started
    held_out = _ranking(model, day.held_out)
    seen = {pick.prompt for pick in (*day.fitted, *day.held_out)}
    more = picks(options.taste, 4 * options.fresh, f"fresh {options.seed}", noise=options.noise)
    others = _read(more, options.backbone)
    unseen = [pick for pick in (*others.fitted, *others.held_out) if pick.prompt not in seen]
    fresh = _ranking(model, unseen[: options.fresh])
    best = attainable(options.taste, options.noise)
    return {
        "fitted": len(day.fitted),
        "seconds": round(seconds, 1),
        "serves": held_out.refusal is None,
        "held_out": asdict(held_out.accuracy),
        "fresh": asdict(fresh),
        "attainable": best,
        "share_of_attainable": round(fresh.accuracy.value / best, 3),
    }


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
