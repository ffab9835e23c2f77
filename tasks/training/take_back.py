"""Whether a lesson stays: by the same quiz before and after it. One that made the student worse is halved or undone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from tasks.evaluation.outcomes import outcomes
from tasks.evaluation.statistics import sign_flip
from tasks.stage import Artifact, stage
from tasks.tables import EVALUATIONS, read_table
from tasks.training import trainer_process
from tasks.workers import Worker

LEVEL = 0.1  # a lesson whose p-value for "worse" is below this does not stay as it is
OUTCOME = "outcome.json"

Outcome = Literal["kept", "halved", "taken_back"]


@stage(retries=2, resources=("checkpoints", "trainer"))
def half_step(
    folder: Path, *, before: Path, after: Path, trust_remote_code: bool, checkpoints: Path, trainer: Worker
) -> None:
    """Make the checkpoint midway between those before and after a lesson."""
    half = trainer.call(trainer_process.half_step, before, after, checkpoints, trust_remote_code)
    (folder / "checkpoint.txt").write_text(half.name)


@stage()
def judge_lesson(folder: Path, *, quizzes: Mapping[str, Artifact], checkpoints: Mapping[str, Path]) -> None:
    """Write which checkpoint the night goes on with: the lesson's, its half step, or the one before.

    `quizzes` and `checkpoints`: by `before`, `after` and, if the lesson made the student worse, `half`.
    """
    worse = {name: p_worse(quizzes["before"], quiz) for name, quiz in quizzes.items() if name != "before"}
    chosen = next((name for name, p_value in worse.items() if p_value >= LEVEL), "before")
    outcomes: dict[str, Outcome] = {"after": "kept", "half": "halved", "before": "taken_back"}
    outcome = {
        "outcome": outcomes[chosen],
        "problems": len(_outcomes(quizzes["before"])),
        "accuracy": {name: float(_outcomes(quiz).mean()) for name, quiz in quizzes.items()},
        "p_worse": worse,
    }
    (folder / OUTCOME).write_text(json.dumps(outcome))
    (folder / "checkpoint.txt").write_text(checkpoints[chosen].name)


def p_worse(before: Artifact, after: Artifact) -> float:
    """Return the one-sided p-value of the exact test that the second quiz went worse than the first."""
    return sign_flip((_outcomes(before) - _outcomes(after)).to_numpy(dtype=float))


def _outcomes(quiz: Artifact) -> pd.Series:
    """Return a quiz's outcomes by problem; what could not be graded counts as wrong."""
    table = read_table(quiz.folder / "evaluations.parquet", EVALUATIONS)
    return table.assign(outcome=outcomes(table).fillna(0.0)).set_index("problem_id")["outcome"]


def sentence(lesson: str, outcome: Mapping[str, Any]) -> str | None:
    """Return what became of a lesson that made the student worse, for the report; None for one that stayed."""
    if outcome["outcome"] == "kept":
        return None
    share = outcome["accuracy"]
    fell = f"{share['before']:.0%} → {share['after']:.0%} of {outcome['problems']} training problems"
    if outcome["outcome"] == "halved":
        return f"The lesson {lesson} made the student worse ({fell}), so only half of it stays ({share['half']:.0%})."
    return (
        f"The lesson {lesson} made the student worse ({fell}; half of it: {share['half']:.0%}) and was taken back. "
        "Its journal lines are taught again on a later night."
    )
