"""An exam episode, turn by turn: what the candidate saw and wrote, and the reward that it got."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from conf.load import load_night
from conf.sections.benchmark import ExamPart
from conf.storage.log import log
from rewards.data.benchmarks import configured
from rewards.environments.episodes import replay, texts_of
from rewards.verifier import Turn
from tasks.report.queries import read_table
from tasks.workers.worker import call_once

LIMIT = 300.0  # seconds that a user's environment may take to play and draw the episode


class ShownEpisode(NamedTuple):
    """The candidate's episode of median value on the exam's target.

    `frames`: for each turn, an SVG of the state before it (empty if the environment has no drawings), and the turn.
    """

    problem_id: str
    value: float
    frames: tuple[tuple[Markup, Turn], ...]


def shown_episode(night: Path) -> ShownEpisode | None:
    """Return the candidate's median episode, or None if the target has no episodes or its environment fails."""
    if (table := read_table(night / "evaluate" / "candidate", "evaluations")) is None:
        return None
    target = load_night(night / "config.yaml").exam.target
    rows = table[table["benchmark"] == target.name].dropna(subset=["value"]).sort_values(["value", "problem_id"])
    if rows.empty:
        return None
    median = rows.iloc[len(rows) // 2]
    arguments = (target, median["problem_id"], texts_of(median["text"]))
    try:
        own = not configured(target).bounded
        frames = call_once("episode", LIMIT, _frames, *arguments) if own else _frames(*arguments)
    except Exception:  # a user's class that can no longer be imported, that raises or that never ends
        log.warning("the report shows no episode", exc_info=True)
        return None
    return ShownEpisode(median["problem_id"], float(median["value"]), frames)


def _frames(target: ExamPart, problem_id: str, texts: Sequence[str]) -> tuple[tuple[Markup, Turn], ...]:
    benchmark: Any = configured(target)
    problems = {problem.problem_id: problem for problem in benchmark.problems("test")}
    turns = replay(benchmark.environment, problems[problem_id], texts)
    draw = getattr(benchmark.environment, "drawing", lambda state: "")
    return tuple((Markup(draw(turn.state)), turn) for turn in turns)
