"""Distillation: the day's worked solutions become supervised lessons."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from conf.schema import BenchmarkConfig, DistillConfig, StudentConfig, TrainerConfig
from models.policy import answer_tokens, load_tokenizer, prompt_tokens
from rewards import benchmarks
from rewards.verifier import Attempt, Problem
from tasks import learner
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
    sources: tuple[BenchmarkConfig, ...],
    exam_questions: tuple[str, ...],
    max_tokens: int,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Keeps the traces whose answer the verifier accepts and whose prompt holds no exam question, and learns them.

    Without a single trace left the checkpoint stays what it was.
    """
    table: pd.DataFrame = read_table(day.folder / "traces.parquet", TRACES)
    kept, counts = _examples(table, checkpoint, student, sources, exam_questions, max_tokens)
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
    sources: tuple[BenchmarkConfig, ...],
    exam_questions: Sequence[str],
    max_tokens: int,
) -> tuple[list[tuple[list[int], list[int]]], dict[str, int]]:
    """Token ids of the traces worth learning, and how many were kept and why others were not."""
    tokenizer = load_tokenizer(checkpoint)
    examples: list[tuple[list[int], list[int]]] = []
    counts: Counter[str] = Counter(kept=0, dropped=0, unknown=0, exam=0, too_long=0)
    for row in table.itertuples():
        messages = json.loads(str(row.messages))
        asked = "\n".join(message["content"] for message in messages)
        if any(question in asked for question in exam_questions):
            counts["exam"] += 1
            continue
        verdict = _verdict(row, sources)
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


def _verdict(row: object, sources: tuple[BenchmarkConfig, ...]) -> str:
    """What the verifier says of a trace whose truth is known; `unknown` otherwise."""
    benchmark, truth = row.benchmark, row.truth  # pyright: ignore
    if pd.isna(benchmark) or pd.isna(truth) or benchmark not in {source.name for source in sources}:
        return "unknown"
    problem = Problem("trace", benchmark, "", truth)
    return benchmarks.load(benchmark).score([Attempt(problem, row.response)])[0].verdict  # pyright: ignore
