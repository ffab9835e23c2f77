"""The owner's prompts from the journal, which are practised while a reward model can judge the answers."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from conf.schema import StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.data.contamination import Contamination, exam_index
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES
from tasks.stage import Artifact, stage
from tasks.tables import OWNER_PROMPTS, read_table, write_table

TABLES = {"preferences": PREFERENCES, "corrections": CORRECTIONS, "feedback": FEEDBACK}
log = logging.getLogger("nightschool")

Messages = list[dict[str, str]]


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

    Left out, and counted in `counts.json`: conversations that evaluate the reward model, also those without a pick so
    far (`held_out`), that ask a question of the exam or nearly one (`exam`), that do not end with the owner's turn
    (`unanswered`), that the student's template refuses (`refused`), and that leave no room for an answer (`too_long`).
    """
    exam = exam_index(exam_questions)
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    for key, (text, held_out) in sorted(
        {_key(text): (text, held_out) for text, held_out in _conversations(day)}.items()
    ):
        messages, tokens = json.loads(text), list[int]()
        why = "held_out" if held_out else _why_excluded(messages, exam)
        if why is None:
            try:
                tokens = prompt_tokens(tokenizer, messages, student)
                why = "too_long" if len(tokens) > max_prompt_tokens else None
            except TemplateError as error:
                log.warning("the student's template refuses one of the owner's prompts: %s", error)
                why = "refused"
        if why is None:
            rows.append(_row(key, messages, tokens))
        counts[why or "prompts"] += 1
    write_table(folder / "owner_prompts.parquet", OWNER_PROMPTS, rows)
    (folder / "counts.json").write_text(json.dumps(counts))


def _conversations(day: Artifact) -> Iterator[tuple[str, bool]]:
    """Yield the conversations, each with whether it is held out."""
    for name, schema in TABLES.items():
        table = read_table(day.folder / f"{name}.parquet", schema)
        yield from zip(table.messages, table.held_out, strict=True)


def _key(messages: str) -> str:
    """Return the conversation's digest, which does not depend on how its JSON is written."""
    return hashlib.sha256(json.dumps(json.loads(messages), sort_keys=True).encode()).hexdigest()[:16]


def _why_excluded(messages: Messages, exam: Contamination) -> str | None:
    if messages[-1]["role"] != "user":
        return "unanswered"
    return "exam" if exam.match_any([message["content"] for message in messages]) else None


def _row(key: str, messages: Messages, tokens: list[int]) -> dict[str, Any]:
    return {
        "problem_id": f"owner/{key}",
        "messages": json.dumps(messages),
        "prompt_token_ids": tokens,
        "question": messages[-1]["content"],
    }
