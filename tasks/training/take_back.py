"""Decides whether to keep a lesson or a block of rounds, by comparing the results of a quiz before and after it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.evaluation.statistics import outcomes, sign_flip
from tasks.stage import Artifact, stage
from tasks.tables import EVALUATIONS, read_table

LEVEL = 0.025  # lessons with a lower p-value for "worse" are taken back; by chance, so is one in forty harmless lessons
OUTCOME = "outcome.json"


@stage()
def check_lesson(folder: Path, *, quizzes: Mapping[str, Artifact], checkpoints: Mapping[str, Path]) -> None:
    """Write the outcome, and name the checkpoint to continue from: `after` if the lesson is kept, else `before`."""
    compared = _compared(quizzes["before"], quizzes["after"])
    p_value = p_worse(quizzes["before"], quizzes["after"])
    kept = p_value >= LEVEL
    outcome = {
        "outcome": "kept" if kept else "taken_back",
        "problems": len(compared),
        "accuracy": {name: float(compared[name].mean()) if len(compared) else None for name in ("before", "after")},
        "p_worse": p_value,
    }
    (folder / OUTCOME).write_text(json.dumps(outcome))
    (folder / "checkpoint.txt").write_text(checkpoints["after" if kept else "before"].name)


def p_worse(before: Artifact, after: Artifact) -> float:
    """Return the p-value of a one-sided exact test of whether the quiz went worse after the lesson than before it."""
    compared = _compared(before, after)
    return sign_flip((compared["before"] - compared["after"]).to_numpy(dtype=float))


def _compared(before: Artifact, after: Artifact) -> pd.DataFrame:
    """Return the outcomes `before` and `after` by problem, without answers that could not be graded."""
    found = {}
    for name, quiz in (("before", before), ("after", after)):
        table = read_table(quiz.folder / "evaluations.parquet", EVALUATIONS)
        found[name] = table.assign(outcome=outcomes(table)).set_index("problem_id")["outcome"]
    return pd.DataFrame(found).dropna().astype(float)


def sentence(what: str, outcome: Mapping[str, Any]) -> str | None:
    """Return the report's sentence about a lesson or block that was taken back, or None if it was kept."""
    if outcome["outcome"] == "kept":
        return None
    share = outcome["accuracy"]
    return (
        f"{what} made the student worse ({share['before']:.0%} → {share['after']:.0%} of {outcome['problems']} "
        "training problems) and was taken back."
    )
