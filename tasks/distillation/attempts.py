"""What the student practised: the problems of earlier rounds and nights, how often each was solved, and by what."""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from conf.load import config_of
from rewards.verifier import Problem
from tasks.layout import passes, rounds
from tasks.rollouts.verdicts import FAILED
from tasks.stage import MANIFEST, is_whole

log = logging.getLogger("nightschool")

RECENT = 7  # nights; of older ones little is kept
PLACE = ["problem_id", "group"]


@dataclass
class Practice:
    """A problem with a truth, the conversation that asked it, and what came of all tries that could be graded."""

    problem: Problem
    messages: list[dict[str, str]]
    tried: int = 0
    solved: int = 0
    right: list[str] = field(default_factory=list)  # correct answers that came to their end; none where not asked for


def earlier_rounds(nights: Path, before: str, model: str) -> list[Path]:
    """The folders of the rounds, and of their refills, of a model's recent nights before a date, in order.

    A night whose configuration this version cannot read may be its own, and is taken for one.
    """
    earlier = sorted(folder for folder in nights.glob("????-??-??") if folder.name < before)
    own = [night for night in earlier if (config := config_of(night)) is None or config.name == model]
    return [one for night in own[-RECENT:] for one in rounds_of(night)]


def rounds_of(night: Path, upto: int | None = None) -> list[Path]:
    """The folders of a night's rounds, and of their refills, in order; `upto`: the number of the last one (all)."""
    own = [folder for number, folder in rounds(night) if upto is None or number <= upto]
    return [one for folder in own for one in passes(folder)]


def practised(rounds: Iterable[Path], *, answers: bool) -> list[Practice]:
    """The problems of these rounds, in the order in which they came first; with the right `answers`, or without.

    A round that was not scored, that has been tidied away, or that another version wrote, is passed over; so is one
    whose table was damaged since, and the log says so.
    """
    found: dict[tuple[str, str, str], Practice] = {}
    for folder in rounds:
        for row in _graded(folder, answers):
            problem = Problem(row["problem_id"], row["benchmark"], row["question"], row["truth"], row["level"])
            key = (problem.benchmark, problem.problem_id, problem.question)
            own = found.setdefault(key, Practice(problem, json.loads(row["messages"])))
            own.tried += 1
            own.solved += row["verdict"] == "correct"
            if answers and row["verdict"] == "correct" and row["finish_reason"] == "stop":
                own.right.append(row["text"])
    return list(found.values())


def _graded(folder: Path, answers: bool) -> Sequence[dict[str, Any]]:
    """The graded answers to problems with a truth, each with its problem."""
    try:
        asked = ["messages", "question", "benchmark", "truth", "level"]
        rows = _table(folder, "score", "scores", [*PLACE, "sample", "verdict"])
        rows = rows.merge(_table(folder, "select_prompts", "prompts", [*PLACE, *asked]), on=PLACE)
        if answers:
            texts = _table(folder, "sample", "rollouts", [*PLACE, "sample", "text", "finish_reason"])
            rows = rows.merge(texts, on=[*PLACE, "sample"])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return []
    rows = rows[rows["benchmark"].notna() & rows["truth"].notna() & (rows["verdict"] != FAILED)]
    return rows.astype(object).where(rows.notna(), None).to_dict("records")  # pyright: ignore


def _table(folder: Path, stage: str, name: str, columns: list[str]) -> pd.DataFrame:
    """A committed table's columns. Raises OSError where it is not there, not committed, or not as it was committed."""
    file = folder / stage / f"{name}.parquet"
    for needed in (file.with_name(MANIFEST), file):
        needed.stat()
    if not is_whole(file):
        log.warning("%s: it was damaged; what its round practised is passed over", file)
        raise OSError(file)
    return pd.read_parquet(file, columns=columns)
