"""Asks the night's candidate what the owner has corrected, so that the report shows whether it took the corrections."""

import json
from pathlib import Path

from conf.schema import EngineConfig, StudentConfig
from models.hf.checkpoint import learned
from models.hf.loading import load_tokenizer, prompt_tokens
from tasks.journal.tables import CORRECTIONS, GENERATED
from tasks.rollouts.verified import sample_verified
from tasks.stage import Artifact, stage
from tasks.tables import read_table
from tasks.workers.worker import Worker

FILE = "answers.json"
MOST = 20  # corrections; the newest


@stage(retries=2, resources=("engine",))
def ask_again(
    folder: Path,
    *,
    day: Artifact,
    checkpoint: Path,
    student: StudentConfig,
    config: EngineConfig,
    max_completion_tokens: int,
    engine: Worker,
) -> None:
    """Write the newest corrections that a checkpoint has learned, each with its greedy answer to the same prompt.

    `day`: the frozen journal. `answers.json` is a list of `question` (the last message), `correction` and `answer`.
    """
    table = read_table(day.folder / "corrections.parquet", CORRECTIONS)
    own = table[table.lesson.isin(learned(checkpoint)) & (table.source != GENERATED)].tail(MOST)
    answers = []
    if len(own):
        conversations, tokenizer = own.messages.map(json.loads), load_tokenizer(checkpoint, student.trust_remote_code)
        groups, _ = sample_verified(
            engine,
            checkpoint,
            config,
            [prompt_tokens(tokenizer, messages, student) for messages in conversations],
            1,
            seed=0,
            temperature=0.0,
            max_tokens=max_completion_tokens,
            trust_remote_code=student.trust_remote_code,
        )
        answers = [
            {"question": messages[-1]["content"], "correction": correction, "answer": answer.text.strip()}
            for messages, correction, (answer,) in zip(conversations, own.correction, groups, strict=True)
        ]
    (folder / FILE).write_text(json.dumps(answers))
