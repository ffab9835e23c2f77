"""Asks the night's candidate what the owner has corrected, so that the report shows whether it took the corrections."""

import json
from pathlib import Path

from conf.schema import EngineConfig, StudentConfig
from tasks.journal.tables import CORRECTIONS
from tasks.rollouts.verified import sample_verified
from tasks.stage import Artifact, stage
from tasks.tables import read_table
from tasks.training.examples import ExampleReader
from tasks.workers.worker import Worker

FILE = "answers.json"
MOST = 20  # corrections; the newest


@stage(retries=2, resources=("engine",))
def ask_again(
    folder: Path,
    *,
    day: Artifact,
    lessons: tuple[str, ...],
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> None:
    """Write a checkpoint's greedy answers to the newest corrected questions among these lessons of the frozen journal.

    `answers.json` is a list of `question` (the last message), `correction` and `answer`.
    """
    table = read_table(day.folder / "corrections.parquet", CORRECTIONS)
    table = table[table.lesson.isin(lessons)].sort_values("day", kind="stable").tail(MOST)
    reader = ExampleReader(checkpoint, student, (), config.max_model_len - 1)
    asked = [(row, prompt) for row, prompt in reader.prompts(table) if reader.fits(prompt)]
    answers = []
    if asked:
        groups, _ = sample_verified(
            engine,
            checkpoint,
            config,
            [prompt for _, prompt in asked],
            1,
            seed=0,
            temperature=0.0,
            max_tokens=max_completion_tokens,
            trust_remote_code=student.trust_remote_code,
        )
        answers = [
            {
                "question": json.loads(row.messages)[-1]["content"],
                "correction": row.correction,
                "answer": answer.text.strip(),
            }
            for (row, _), (answer,) in zip(asked, groups, strict=True)
        ]
    (folder / FILE).write_text(json.dumps(answers))
