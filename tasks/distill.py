"""Distillation: the day's worked solutions become supervised lessons."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from conf.benchmark import BenchmarkName
from conf.lessons import DistillConfig
from conf.schema import SandboxConfig, StudentConfig, TrainerConfig
from models.policy import answer_tokens, load_tokenizer, prompt_tokens
from rewards import benchmarks
from rewards.verifier import Attempt, Problem
from tasks import learner
from tasks.exam_guard import conversation, holds_exam_question
from tasks.stage import Artifact, stage
from tasks.tables import TRACES, read_table
from tasks.workers import Worker


@stage(tags=["trainer"], retries=2, means=("trainer", "checkpoints"))
def distill(
    folder: Path,
    *,
    day: Artifact,
    checkpoint: Path,
    config: DistillConfig,
    trainer_config: TrainerConfig,
    student: StudentConfig,
    sandbox: SandboxConfig,
    exam_questions: tuple[str, ...],
    max_tokens: int,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Keeps the traces whose answer the verifier accepts and whose prompt holds no exam question, and learns them.

    Without a single trace left the checkpoint stays what it was.
    """
    table: pd.DataFrame = read_table(day.folder / "traces.parquet", TRACES)
    kept, counts = _examples(table, checkpoint, student, sandbox, exam_questions, max_tokens)
    curve: list[dict[str, float]] = []
    if kept and config.steps:
        checkpoint, curve = trainer.call(learner.lesson, checkpoint, trainer_config, config, kept, checkpoints)
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)


def _examples(
    table: pd.DataFrame,
    checkpoint: Path,
    student: StudentConfig,
    sandbox: SandboxConfig,
    exam_questions: Sequence[str],
    max_tokens: int,
) -> tuple[list[tuple[list[int], list[int]]], dict[str, int]]:
    """Token ids of the traces worth learning, and how many were kept and why others were not."""
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    examples: list[tuple[list[int], list[int]]] = []
    counts: Counter[str] = Counter(kept=0, dropped=0, unknown=0, exam=0, too_long=0)
    for row, verdict in zip(table.itertuples(), _verdicts(table, sandbox), strict=True):
        messages = json.loads(str(row.messages))
        if holds_exam_question(conversation(messages), exam_questions):
            counts["exam"] += 1
            continue
        if verdict not in ("correct", "unknown"):
            counts["dropped"] += 1
            continue
        prompt = prompt_tokens(tokenizer, messages, student)
        answer = answer_tokens(tokenizer, str(row.response))
        if len(prompt) + len(answer) > max_tokens:
            counts["too_long"] += 1
            continue
        counts["kept" if verdict == "correct" else "unknown"] += 1
        examples.append((prompt, answer))
    return examples, dict(counts)


def _verdicts(table: pd.DataFrame, sandbox: SandboxConfig) -> list[str]:
    """What a trace's own benchmark says of it; `unknown` where that or a truth is missing, or its grader cannot tell.

    Strictly, whatever readings the night allows itself; each benchmark judges all of its traces at once.
    """
    rows: list[Any] = list(table.itertuples())
    verdicts = ["unknown"] * len(rows)
    for name in get_args(BenchmarkName):
        own = [place for place, row in enumerate(rows) if row.benchmark == name and row.truth is not None]
        attempts = [_attempt(rows[place], name) for place in own]
        scores = benchmarks.load(name, sandbox=sandbox).score(attempts) if own else []
        for place, score in zip(own, scores, strict=True):
            verdicts[place] = "unknown" if score.reward is None else score.verdict
    return verdicts


def _attempt(row: Any, benchmark: str) -> Attempt:
    return Attempt(Problem("trace", benchmark, conversation(json.loads(row.messages)), row.truth), row.response)
