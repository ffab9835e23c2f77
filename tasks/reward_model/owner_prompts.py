"""The owner's prompts from the journal. Rounds train on these prompts while a learned reward can score the answers."""

import hashlib
import json
from pathlib import Path

from conf.schema import StudentConfig
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES
from tasks.stage import Artifact, stage
from tasks.tables import OWNER_PROMPTS, Row, read_table, write_table
from tasks.training.examples import ExampleReader

TABLES = {"preferences": PREFERENCES, "corrections": CORRECTIONS, "feedback": FEEDBACK}


@stage()
def owner_prompts(
    folder: Path,
    *,
    day: Artifact,
    exam_questions: tuple[str, ...],
    checkpoint: Path,
    student: StudentConfig,
    max_prompt_tokens: int,
) -> None:
    """Write the distinct conversations of the day's picks, corrections and feedback, rendered for the student.

    A conversation is left out if it is held out to evaluate the reward model (even if it has no pick), if it matches an
    exam question exactly or nearly, if the student's chat template refuses it, or if its prompt exceeds
    `max_prompt_tokens`. `counts.json` counts such conversations (see `ExampleReader`).
    """
    reader = ExampleReader(checkpoint, student, exam_questions, max_prompt_tokens)
    rows: dict[str, Row] = {}
    for name, schema in TABLES.items():
        for row, tokens in reader.prompts(read_table(day.folder / f"{name}.parquet", schema)):
            if reader.fits(tokens):
                messages = json.loads(row.messages)  # the same conversation may be serialized differently
                key = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:16]
                rows[key] = {
                    "problem_id": f"owner/{key}",
                    "messages": json.dumps(messages),
                    "prompt_token_ids": tokens,
                    "question": messages[-1]["content"],
                }
    write_table(folder / "owner_prompts.parquet", OWNER_PROMPTS, [row for _, row in sorted(rows.items())])
    (folder / "counts.json").write_text(json.dumps(reader.counts | {"used": len(rows)}))
