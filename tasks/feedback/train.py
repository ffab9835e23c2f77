"""Lessons from the owner's feedback, a stage each: corrections, texts, ratings and picks.

Without a line to learn, a stage leaves the checkpoint as it is.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pandas as pd
import pyarrow as pa

from conf.schema import StudentConfig, TrainerConfig
from conf.sections.lessons import CorrectionsConfig, FeedbackConfig, LessonConfig, PicksConfig, WordsConfig
from models.lessons.preference_data import Example
from tasks.feedback.examples import ExampleReader
from tasks.stage import Artifact, stage
from tasks.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS, read_table
from tasks.training import trainer_process
from tasks.workers import Worker

log = logging.getLogger("nightschool")


class LessonInputs(TypedDict):
    """The inputs of all feedback lessons.

    `unseen_share`: the share of conversations that judge the reward model and are not learnt; 0 without one.
    `max_tokens`: of prompt and answer together; longer examples are left out. `by_day`: where the lines are that the
    student has learnt by day (`file:line`).
    """

    day: Artifact
    checkpoint: Path
    trainer_config: TrainerConfig
    student: StudentConfig
    exam_questions: tuple[str, ...]
    unseen_share: float
    max_tokens: int
    by_day: tuple[str, ...]
    checkpoints: Path
    trainer: Worker


@stage(retries=2, resources=("trainer", "checkpoints"))
def corrections(folder: Path, *, config: CorrectionsConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Fine-tune on the answers that the owner corrected."""
    reader, table = _open(inputs, "corrections", CORRECTIONS)
    _learn(folder, config, reader.corrections(table), reader, inputs)


@stage(retries=2, resources=("trainer", "checkpoints"))
def words(folder: Path, *, config: WordsConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Continue pretraining on the owner's texts."""
    reader, table = _open(inputs, "words", WORDS)
    _learn(folder, config, reader.words(table, config.max_tokens), reader, inputs)


@stage(retries=2, resources=("trainer", "checkpoints"))
def feedback(folder: Path, *, config: FeedbackConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Learn from rated answers by KTO, with the checkpoint before as the reference."""
    reader, table = _open(inputs, "feedback", FEEDBACK)
    _learn(folder, config, reader.feedback(table), reader, inputs)


@stage(retries=2, resources=("trainer", "checkpoints"))
def picks(folder: Path, *, config: PicksConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Learn from picks without a reward model: by DPO against the other answers, or supervised on the picked one."""
    reader, table = _open(inputs, "preferences", PREFERENCES)
    found = reader.picks(table)
    if config.method == "dpo":
        _learn(folder, config, found, reader, inputs)
    else:
        best: list[Example] = [(list(pick.prompt), list(pick.answers[pick.chosen])) for pick in found]
        _learn(folder, config, best, reader, inputs)


def _open(inputs: LessonInputs, name: str, schema: pa.Schema) -> tuple[ExampleReader, pd.DataFrame]:
    """Return a reader and one of the day's tables, without the lines that the student has learnt already."""
    exam, unseen = inputs["exam_questions"], inputs["unseen_share"]
    reader = ExampleReader(inputs["checkpoint"], inputs["student"], exam, inputs["max_tokens"], unseen)
    table = read_table(inputs["day"].folder / f"{name}.parquet", schema)
    table = table[~table.source.isin(inputs["by_day"])]
    return reader, table[~table.learnt.fillna(False)] if "learnt" in table else table


def _learn(
    folder: Path, config: LessonConfig, examples: Sequence[Any], reader: ExampleReader, inputs: LessonInputs
) -> None:
    """Learn the examples in the trainer's process; write the checkpoint, each step's metrics, and the counts."""
    checkpoint = inputs["checkpoint"]
    curve: list[dict[str, float]] = []
    if examples:
        checkpoint, curve = inputs["trainer"].call(
            trainer_process.lesson, checkpoint, inputs["trainer_config"], config, examples, inputs["checkpoints"]
        )
    counts = dict(reader.counts)
    log.info("%s: %s", folder.name, ", ".join(f"{number} {name}" for name, number in counts.items()))
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)
