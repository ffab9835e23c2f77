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
from models.hf.checkpoint import learned
from models.lessons.pace import MOST_STEPS, Pace
from models.lessons.preference_data import Example
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.stage import Artifact, stage
from tasks.tables import read_table
from tasks.training import trainer_process
from tasks.training.examples import ExampleReader
from tasks.workers.worker import Worker

WORDS_TOKENS = 256  # of a piece of text; longer ones are split
log = logging.getLogger("nightschool")


class LessonInputs(TypedDict):
    """The inputs of all feedback lessons.

    `max_tokens`: of prompt and answer together; longer examples are left out. `pace`: the channel's share of the
    night's hours; None: it takes all steps.
    """

    day: Artifact
    checkpoint: Path
    trainer_config: TrainerConfig
    student: StudentConfig
    exam_questions: tuple[str, ...]
    max_tokens: int
    pace: Pace | None
    checkpoints: Path
    trainer: Worker


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
def corrections(folder: Path, *, config: CorrectionsConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Fine-tune on the answers that the owner corrected."""
    reader, table = _open(inputs, "corrections", CORRECTIONS)
    _learn(folder, config, reader.corrections(table), reader, inputs)


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
def words(folder: Path, *, config: WordsConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Continue pretraining on the owner's texts."""
    reader, table = _open(inputs, "words", WORDS)
    _learn(folder, config, reader.words(table, WORDS_TOKENS), reader, inputs)


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
def feedback(folder: Path, *, config: FeedbackConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Learn from rated answers by KTO, with the checkpoint before as the reference."""
    reader, table = _open(inputs, "feedback", FEEDBACK)
    _learn(folder, config, reader.feedback(table), reader, inputs)


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
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
    """Return a reader and one of the day's tables, without the lessons that the student has learned already."""
    reader = ExampleReader(inputs["checkpoint"], inputs["student"], inputs["exam_questions"], inputs["max_tokens"])
    table = read_table(inputs["day"].folder / f"{name}.parquet", schema)
    return reader, table[~table.lesson.isin(learned(inputs["checkpoint"]))]


def _learn(
    folder: Path, config: LessonConfig, examples: Sequence[Any], reader: ExampleReader, inputs: LessonInputs
) -> None:
    """Learn the oldest examples in the trainer's process; write the checkpoint, each step's metrics, and the counts.

    A night takes at most `MOST_STEPS` of a channel, and no more than its `pace` allows. What is left is not learned, so
    a later night teaches it.
    """
    checkpoint = inputs["checkpoint"]
    curve: list[dict[str, float]] = []
    tonight = max(1, MOST_STEPS * config.batch_size // config.epochs)
    if examples := examples[:tonight]:
        checkpoint, curve = inputs["trainer"].call(
            trainer_process.lesson,
            checkpoint,
            inputs["trainer_config"],
            config,
            examples,
            inputs["checkpoints"],
            inputs["pace"],
            reader.lessons[:tonight],
        )
    later = {*reader.lessons} - learned(checkpoint)
    counts = {**reader.counts, "later": len(later)}
    log.info("%s: %s", folder.name, ", ".join(f"{number} {name}" for name, number in counts.items()))
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)
