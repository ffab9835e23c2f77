"""Lessons from the owner's feedback, with one stage per kind: corrections, texts, ratings and picks.

A stage that finds no examples passes on the checkpoint that it was given.
"""

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pandas as pd
import pyarrow as pa

from conf.schema import StudentConfig, TrainerConfig
from conf.sections.lessons import CorrectionsConfig, FeedbackConfig, LessonConfig, PicksConfig, WordsConfig
from models.hf.checkpoint import learned
from models.lessons.pace import MOST_STEPS, Pace
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.stage import Artifact, stage
from tasks.tables import read_table
from tasks.training import trainer_process
from tasks.training.examples import ExampleReader
from tasks.workers.worker import Worker

WORDS_TOKENS = 256  # per piece of text; longer texts are split
log = logging.getLogger("nightschool")


class LessonInputs(TypedDict):
    """The inputs that all feedback lessons share.

    `max_tokens`: the limit for prompt and answer together; longer examples are left out. `pace`: the lesson's share of
    the night's hours; None means that the lesson takes all its steps.
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
    """Train on corrections: imitate each, and prefer it to the answer that it corrects."""
    _learn(folder, config, inputs, "corrections", CORRECTIONS, ExampleReader.corrections)


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
def words(folder: Path, *, config: WordsConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Continue pretraining on the owner's texts."""
    _learn(folder, config, inputs, "words", WORDS, lambda reader, table: reader.words(table, WORDS_TOKENS))


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
def feedback(folder: Path, *, config: FeedbackConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Train on rated answers with KTO. The reference model is the checkpoint that the stage starts from."""
    _learn(folder, config, inputs, "feedback", FEEDBACK, ExampleReader.feedback)


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
def picks(folder: Path, *, config: PicksConfig, **inputs: Unpack[LessonInputs]) -> None:
    """Train on picks with DPO, without a reward model."""
    _learn(folder, config, inputs, "preferences", PREFERENCES, ExampleReader.picks)


def _learn(
    folder: Path,
    config: LessonConfig,
    inputs: LessonInputs,
    name: str,
    schema: pa.Schema,
    read: Callable[[ExampleReader, pd.DataFrame], Sequence[Any]],
) -> None:
    """Train on the oldest examples, as many as fit tonight. Write the checkpoint's name, step metrics and counts.

    `read` makes examples from one of the day's tables, without the rows of lessons that the student has already
    learned. A night takes at most `MOST_STEPS` steps on each kind of feedback, and no more than `pace` allows. The
    remaining examples wait for a later night.
    """
    checkpoint, curve = inputs["checkpoint"], list[dict[str, float]]()
    reader = ExampleReader(checkpoint, inputs["student"], inputs["exam_questions"], inputs["max_tokens"])
    table = read_table(inputs["day"].folder / f"{name}.parquet", schema)
    tonight = max(1, MOST_STEPS * config.batch_size // config.epochs)
    examples = read(reader, table[~table.lesson.isin(learned(checkpoint))])[:tonight]
    cut = {*reader.lessons[tonight:]}  # a text of which only a part fits tonight is not learned tonight
    if examples:
        checkpoint, curve = inputs["trainer"].call(
            trainer_process.lesson,
            checkpoint,
            inputs["trainer_config"],
            config,
            examples,
            inputs["checkpoints"],
            inputs["pace"],
            [None if name in cut else name for name in reader.lessons[:tonight]],
        )
    if isinstance(config, PicksConfig) and curve and curve[-1]["kl"] > config.most_kl:
        log.info("picks: ended after %d steps: the answers have changed by %s nats a token", len(curve), config.most_kl)
    later = {*reader.lessons} - learned(checkpoint)
    counts = {**reader.counts, "later": len(later)}
    log.info("%s: %s", folder.name, ", ".join(f"{number} {name}" for name, number in counts.items()))
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)
