"""Lessons from the owner's feedback: corrections, texts, ratings and picks."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from conf.schema import StudentConfig, TrainerConfig
from conf.sections.lessons import CorrectionsConfig, FeedbackConfig, LessonConfig, PicksConfig, WordsConfig
from conf.storage.log import log
from models.hf.checkpoint import learned
from models.lessons.pace import MOST_STEPS, Pace
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.stage import Artifact, stage
from tasks.tables import read_table
from tasks.training import trainer_process
from tasks.training.examples import ExampleReader
from tasks.workers.worker import Worker, working_on

WORDS_TOKENS = 256  # per piece of text; longer texts are split


# Of each kind of lesson: the day's table, its schema, and how its rows become examples.
TABLES: dict[type[LessonConfig], tuple[str, pa.Schema, Callable[[ExampleReader, pd.DataFrame], Sequence[Any]]]] = {
    CorrectionsConfig: ("corrections", CORRECTIONS, ExampleReader.corrections),
    WordsConfig: ("words", WORDS, lambda reader, table: reader.words(table, WORDS_TOKENS)),
    FeedbackConfig: ("feedback", FEEDBACK, ExampleReader.feedback),
    PicksConfig: ("preferences", PREFERENCES, ExampleReader.picks),
}


@stage(retries=2, resources=("trainer", "checkpoints", "pace"))
def feedback_lesson(
    folder: Path,
    *,
    day: Artifact,
    checkpoint: Path,
    config: LessonConfig,
    trainer_config: TrainerConfig,
    student: StudentConfig,
    exam_questions: tuple[str, ...],
    max_tokens: int,
    pace: Pace | None,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Train on the oldest examples, as many as fit tonight. Write the checkpoint's name, step metrics and counts.

    The examples are of the kind that `config` is for, without those of lessons that the student has already learned.
    Without any, the given checkpoint is passed on. `max_tokens`: the limit for prompt and answer together; longer
    examples are left out. A night takes at most `MOST_STEPS` steps on each kind of feedback, and no more than `pace`
    allows (None: all). The remaining examples wait for a later night.
    """
    name, schema, read = TABLES[type(config)]
    curve = list[dict[str, float]]()
    reader = ExampleReader(checkpoint, student, exam_questions, max_tokens)
    table = read_table(day.folder / f"{name}.parquet", schema)
    tonight = max(1, MOST_STEPS * config.batch_size // config.epochs)
    examples = read(reader, table[~table.lesson.isin(learned(checkpoint))])[:tonight]
    cut = {*reader.lessons[tonight:]}  # a text of which only a part fits tonight is not learned tonight
    if examples:
        lessons = [None if lesson in cut else lesson for lesson in reader.lessons[:tonight]]
        with working_on(folder.name):  # a long kind may follow a short one
            checkpoint, curve = trainer.call(
                trainer_process.lesson, checkpoint, trainer_config, config, examples, checkpoints, pace, lessons
            )
    if isinstance(config, PicksConfig) and curve and curve[-1]["kl"] > config.most_kl:
        log.info("picks: ended after %d steps: the answers have changed by %s nats a token", len(curve), config.most_kl)
    later = {*reader.lessons} - learned(checkpoint)
    counts = {**reader.counts, "later": len(later)}
    log.info("%s: %s", folder.name, ", ".join(f"{number} {name}" for name, number in counts.items()))
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)
