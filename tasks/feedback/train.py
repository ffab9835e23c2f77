"""The owner's own channels as lessons, each a stage of its own: corrections, words, praise and picks.

A channel without a line that can be learnt leaves the checkpoint what it was.
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
from models.lessons.preference_data import Example
from tasks.feedback import trainer_calls
from tasks.feedback.examples import LessonLines
from tasks.stage import Artifact, stage
from tasks.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS, read_table
from tasks.workers import Worker

log = logging.getLogger("nightschool")


class LessonInputs(TypedDict):
    """What every channel works with.

    `unseen_share`: of the owner's conversations, those that judge a reward model and are not learnt; 0 where there is
    none. `max_tokens`: of a prompt and an answer together; longer ones are left out.
    """

    day: Artifact
    checkpoint: Path
    trainer_config: TrainerConfig
    student: StudentConfig
    exam_questions: tuple[str, ...]
    unseen_share: float
    max_tokens: int
    checkpoints: Path
    trainer: Worker


@stage(retries=2, resources=("trainer", "checkpoints"))
def corrections(folder: Path, *, config: CorrectionsConfig, **desk: Unpack[LessonInputs]) -> None:
    """Supervised lessons on the answers that the owner corrected."""
    lines, table = _opened(desk, "corrections", CORRECTIONS)
    _learn(folder, trainer_calls.imitate, config, lines.corrections(table), lines, desk)


@stage(retries=2, resources=("trainer", "checkpoints"))
def words(folder: Path, *, config: WordsConfig, **desk: Unpack[LessonInputs]) -> None:
    """Continued pretraining on the owner's texts: each token from those before it."""
    lines, table = _opened(desk, "words", WORDS)
    _learn(folder, trainer_calls.imitate, config, lines.words(table, config.max_tokens), lines, desk)


@stage(retries=2, resources=("trainer", "checkpoints"))
def feedback(folder: Path, *, config: FeedbackConfig, **desk: Unpack[LessonInputs]) -> None:
    """Praise and scolding by KTO, anchored at the checkpoint before."""
    lines, table = _opened(desk, "feedback", FEEDBACK)
    _learn(folder, trainer_calls.kto, config, lines.feedback(table), lines, desk)


@stage(retries=2, resources=("trainer", "checkpoints"))
def picks(folder: Path, *, config: PicksConfig, **desk: Unpack[LessonInputs]) -> None:
    """The picks without a reward model: by DPO against the others, or supervised on the answer picked."""
    lines, table = _opened(desk, "preferences", PREFERENCES)
    found = lines.picks(table)
    if config.method == "dpo":
        _learn(folder, trainer_calls.dpo, config, found, lines, desk)
    else:
        best: list[Example] = [(list(pick.prompt), list(pick.answers[pick.chosen])) for pick in found]
        _learn(folder, trainer_calls.imitate, config, best, lines, desk)


def _opened(desk: LessonInputs, name: str, schema: pa.Schema) -> tuple[LessonLines, pd.DataFrame]:
    """One of the day's tables, without what the champion has learnt already, and who reads it."""
    exam, unseen = desk["exam_questions"], desk["unseen_share"]
    lines = LessonLines(desk["checkpoint"], desk["student"], exam, desk["max_tokens"], unseen)
    table = read_table(desk["day"].folder / f"{name}.parquet", schema)
    return lines, table[~table.learnt.fillna(False)] if "learnt" in table else table


def _learn(
    folder: Path,
    teach: Callable[..., trainer_calls.Learnt],
    config: LessonConfig,
    examples: Sequence[Any],
    lines: LessonLines,
    desk: LessonInputs,
) -> None:
    """Has the trainer's process learn the examples; writes the checkpoint, each step's figures, and the counts."""
    checkpoint = desk["checkpoint"]
    curve: list[dict[str, float]] = []
    if examples:
        checkpoint, curve = desk["trainer"].call(
            teach, checkpoint, desk["trainer_config"], config, examples, desk["checkpoints"]
        )
    counts = dict(lines.counts)
    log.info("%s: %s", folder.name, ", ".join(f"{number} {name}" for name, number in counts.items()))
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)
