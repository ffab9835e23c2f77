"""An episode of the exam, turn by turn: what the candidate saw, wrote and got."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from conf.load import load_night
from conf.storage.home import InputError
from rewards.benchmarks import configured
from rewards.episodes import replay, texts_of
from tasks.report.queries import read_table


@dataclass(frozen=True)
class Frame:
    """One turn. `drawing`: SVG of the state before it; empty where the environment draws nothing."""

    drawing: Markup
    observation: str
    text: str
    valid: bool
    reward: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class ShownEpisode:
    """An episode of the exam's target, whose value is the candidate's median."""

    problem_id: str
    value: float
    frames: tuple[Frame, ...]


def shown_episode(night: Path) -> ShownEpisode | None:
    """Return an episode of the candidate; None where the target is no environment, or cannot be played here."""
    table = read_table(night / "evaluate" / "candidate", "evaluations")
    if table is None or table["value"].isna().all():
        return None
    target = load_night(night / "config.yaml").exam.target
    try:
        benchmark: Any = configured(target)
        problems = {problem.problem_id: problem for problem in benchmark.problems("test")}
    except InputError:  # a user's class that is not importable any more
        return None
    row = _median(table[table["benchmark"] == target.name])
    turns = replay(benchmark.environment, problems[row["problem_id"]], texts_of(row["text"]))
    draw = getattr(benchmark.environment, "drawing", lambda state: "")
    frames = (
        Frame(Markup(draw(turn.state)), turn.observation, turn.text, turn.valid, turn.reward, turn.parts)
        for turn in turns
    )
    return ShownEpisode(row["problem_id"], float(row["value"]), tuple(frames))


def _median(rows: pd.DataFrame) -> pd.Series:
    ordered = rows.sort_values(["value", "problem_id"])
    return ordered.iloc[len(ordered) // 2]
