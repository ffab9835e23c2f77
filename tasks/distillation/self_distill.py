"""Rejection-sampling self-distillation: the student's own right answers to problems that it mostly gets wrong."""

import json
from pathlib import Path
from typing import Any

from tasks.distillation.attempts import Practice, earlier_rounds, practised, rounds_of
from tasks.stage import Artifact, stage
from tasks.tables import TRACES, write_table

HARD = 0.5  # a problem solved less often is hard


@stage(resources=("night", "nights"))
def own_answers(
    folder: Path,
    *,
    model: str,
    scores: tuple[Artifact, ...],
    upto: int,
    per_problem: int,
    date: str,
    night: Path,
    nights: Path,
) -> None:
    """Writes a table of traces: verified answers to the hard problems of tonight's rounds and of recent nights.

    `model`: the nights of this name are the student's. `scores`: of tonight's rounds, `upto` the number of the last
    one. At most `per_problem` a problem, no text twice and the shortest first: of several ways to an answer the
    shortest has the least that only happened to be there. Yuan et al. 2023 (arXiv:2308.01825) call it
    rejection-sampling fine-tuning, and find that different solutions matter most.
    """
    rounds = [*earlier_rounds(nights, date, model), *rounds_of(night, upto)]
    hard = [one for one in practised(rounds, answers=True) if is_hard(one)]
    rows = [row for practice in hard for row in _traces(practice, per_problem)]
    write_table(folder / "traces.parquet", TRACES, rows)


def is_hard(practice: Practice) -> bool:
    """Solved at least once, and less than half of the time."""
    return 0 < practice.solved < HARD * practice.tried


def _traces(practice: Practice, per_problem: int) -> list[dict[str, Any]]:
    shortest = sorted(set(practice.right), key=lambda text: (len(text), text))
    return [
        {
            "messages": json.dumps(practice.messages),
            "response": response,
            "teacher": "itself",
            "benchmark": practice.problem.benchmark,
            "truth": practice.problem.truth,
            "source": "own answers",
        }
        for response in shortest[:per_problem]
    ]
