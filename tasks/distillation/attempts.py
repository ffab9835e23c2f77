"""The problems that the student practised in earlier rounds and nights, with attempt counts and correct answers."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from conf.load import config_of
from conf.storage.home import NIGHTS
from conf.storage.layout import passes, rounds
from conf.storage.log import log
from rewards.verifier import Problem
from tasks.rollouts.verdicts import FAILED, GIVEN
from tasks.stage import MANIFEST, committed

RECENT_NIGHTS = 7  # older nights seldom have their tables any more
KEY = ["problem_id", "group"]
TABLES = ("score/scores.parquet", "select_prompts/prompts.parquet", "sample/rollouts.parquet")


@dataclass
class PractisedProblem:
    """A problem with a truth, the conversation that asked it, and the results of the graded attempts at it."""

    problem: Problem
    messages: list[dict[str, str]]
    tried: int = 0
    solved: int = 0
    correct: list[str] = field(default_factory=list)  # the complete correct answers, if requested

    def trace(self, response: str, teacher: str, source: str) -> dict[str, Any]:
        """Return a row of the traces table with `response` as this problem's solution."""
        known = {"benchmark": self.problem.benchmark, "truth": self.problem.truth}
        messages = json.dumps(self.messages)
        return {"messages": messages, "response": response, "teacher": teacher, "source": source, **known}


def earlier_rounds(nights: Path, before: str, model: str) -> list[Path]:
    """Return the folders of all rounds and refills, in order, of a model's last seven nights before the date `before`.

    A night without a readable configuration is assumed to belong to the model.
    """
    earlier = sorted((folder for folder in nights.glob(NIGHTS) if folder.name < before), reverse=True)
    matching = (night for night in earlier if (config := config_of(night)) is None or config.name == model)
    recent = [*islice(matching, RECENT_NIGHTS)]  # a long history of configurations takes seconds to read
    return [folder for night in recent[::-1] for folder in rounds_of(night)]


def rounds_of(night: Path, upto: int | None = None) -> list[Path]:
    """Return the folders of a night's rounds and refills, in order, up to round number `upto` (default: all)."""
    return [part for number, folder in rounds(night) if upto is None or number <= upto for part in passes(folder)]


def practised_problems(rounds: Iterable[Path], *, answers: bool) -> list[PractisedProblem]:
    """Return the problems of these rounds, ordered by first attempt, with their correct answers if `answers` is set.

    Skips rounds that were not scored, rounds whose tables were pruned and, with a warning, rounds with damaged tables.
    """
    practised: dict[tuple[str, str, str], PractisedProblem] = {}
    for folder in rounds:
        for row in _graded(folder, answers):
            problem = Problem(row["problem_id"], row["benchmark"], row["question"], row["truth"], row["level"])
            key = (problem.benchmark, problem.problem_id, problem.question)
            entry = practised.setdefault(key, PractisedProblem(problem, json.loads(row["messages"])))
            entry.tried += 1
            entry.solved += row["verdict"] == "correct"
            if answers and row["verdict"] == "correct" and row["finish_reason"] == "stop":
                entry.correct.append(row["text"])
    return list(practised.values())


def _graded(folder: Path, answers: bool) -> Sequence[dict[str, Any]]:
    scores, prompts, rollouts = (folder / name for name in TABLES)
    for table in (scores, prompts, rollouts) if answers else (scores, prompts):
        if committed(table.parent) is None:
            if table.exists() and table.with_name(MANIFEST).exists():
                log.warning("%s is damaged: this round is not used for lessons", table)
            return []
    rows = pd.read_parquet(scores, columns=[*KEY, "sample", "verdict"])
    asked = [*KEY, "messages", "question", "benchmark", "truth", "level", "hint"]
    rows = rows.merge(pd.read_parquet(prompts).reindex(columns=asked), on=KEY)
    rows = rows[(rows["hint"].fillna("") == "") & (rows["verdict"] != GIVEN)]  # what follows a hint is no whole answer
    if answers:
        texts = [*KEY, "sample", "text", "finish_reason"]
        rows = rows.merge(pd.read_parquet(rollouts, columns=texts), on=[*KEY, "sample"])
    rows = rows[rows["benchmark"].notna() & rows["truth"].notna() & (rows["verdict"] != FAILED)]
    return rows.astype(object).where(rows.notna(), None).to_dict("records")  # pyrefly: ignore[bad-return]
