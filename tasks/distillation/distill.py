"""Distillation: worked solutions as supervised lessons."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jinja2 import TemplateError

from conf.schema import BenchmarkConfig, SandboxConfig, StudentConfig, TrainerConfig
from conf.sections.lessons import DistillConfig
from models.hf.checkpoint import learned
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.pace import Pace, came
from models.lessons.preference_data import EpisodeExample, Example
from rewards.data.benchmarks import configured
from tasks.distillation.demonstrations import Demonstrations
from tasks.distillation.known import Answering, mark_known
from tasks.distillation.trace_filter import (
    LEARNED,
    Fate,
    Trace,
    counts,
    counts_by_source,
    draw_lessons,
    filter_traces,
    traces_of,
)
from tasks.journal.tables import TRACES
from tasks.stage import Artifact, stage
from tasks.tables import read_rollouts, read_table
from tasks.training import trainer_process
from tasks.workers.worker import Worker

PACE = "pace.json"  # of a lesson that had a pace: how many steps it took, of how many


@stage(retries=2, resources=("answering", "trainer", "checkpoints", "pace"))
def distill(
    folder: Path,
    *,
    traces: tuple[Artifact, ...],
    checkpoint: Path,
    config: DistillConfig,
    trainer_config: TrainerConfig,
    student: StudentConfig,
    sandbox: SandboxConfig,
    benchmarks: tuple[BenchmarkConfig, ...],
    exam_questions: tuple[str, ...],
    unseen: tuple[str, ...],
    drawn_by: str,
    max_tokens: int,
    checkpoints: Path,
    trainer: Worker,
    rehearsed: Artifact | None = None,
    answering: Answering | None = None,
    pace: Pace | None = None,
) -> None:
    """Learn the traces that the verifier accepts, or nobody can judge, and that ask no problem of the exam.

    Only as many as the configured steps have room for, once each, drawn by the seed `drawn_by`, and of them those that
    come in the steps that its `pace` allows. What the checkpoint has learned of the journal is left out; what has no
    room, or is held out, is not learned by the new one, so that a later night teaches it. Given how the student is
    `answering`, solutions of problems that it solves already are not learned. The student's `rehearsed` answers are
    learned among the traces (see `tasks/distillation/rehearsal.py`), and not without any. `traces`: stages that wrote a
    traces table. `benchmarks`: the night's, for the user's own among them. `unseen`: openings of the conversations that
    judge the reward model (see `models/lessons/preference_data.py`); traces that begin so are not learned. Without
    traces the checkpoint stays the same.
    """
    started = time.perf_counter()
    tables = [traces_of(read_table(artifact.folder / "traces.parquet", TRACES)) for artifact in traces]
    known = learned(checkpoint)
    read = [trace for table in tables for trace in table if trace.lesson not in known]
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)

    demonstrations = {
        benchmark.name: Demonstrations(benchmark.environment, tokenizer, student)
        for benchmark in map(configured, benchmarks)
        if benchmark.environment is not None
    }

    def tokens(trace: Trace) -> Example | EpisodeExample:
        if trace.benchmark in demonstrations:
            return demonstrations[trace.benchmark].example(trace)
        return prompt_tokens(tokenizer, trace.messages, student), answer_tokens(tokenizer, trace.response)

    def unfit(trace: Trace) -> Fate | None:
        try:
            return "too_long" if sum(map(len, tokens(trace)[:2])) > max_tokens else None
        except TemplateError:
            return "refused"

    user_benchmarks = {entry.name: configured(entry) for entry in benchmarks if ":" in entry.name}
    filtered = filter_traces(
        read, sandbox, exam_questions, config.traces_per_problem, unfit, unseen, [*user_benchmarks.values()]
    )
    own = read_rollouts(rehearsed.folder / "rollouts.parquet") if rehearsed else []
    filtered = draw_lessons(filtered, config.steps * config.batch_size - len(own), drawn_by)
    if answering is not None:
        filtered = mark_known(filtered, checkpoint, student, sandbox, user_benchmarks, answering)
    chosen = [index for index, trace in enumerate(filtered) if trace.fate in LEARNED]
    examples = [tokens(filtered[index]) for index in chosen]
    curve: list[dict[str, float]] = []
    if examples:
        rehearsals = round(len(examples) * config.rehearsal / (1 - config.rehearsal))
        examples += [(rollout.prompt_token_ids, rollout.token_ids) for rollout in own[:rehearsals]]
        checkpoint, curve = trainer.call(
            trainer_process.lesson,
            checkpoint,
            trainer_config,
            config,
            examples,
            checkpoints,
            pace and pace.left(started),  # without what the student's own attempts took
            [filtered[index].lesson for index in chosen],
            [trace.lesson for trace in filtered if trace.lesson and trace.fate not in (*LEARNED, "later", "held_out")],
        )
        taught = came(len(examples), config, trainer_config.seed, len(curve))
        for index in (index for number, index in enumerate(chosen) if number not in taught):
            filtered[index] = replace(filtered[index], fate="later")
        if pace is not None and pace.file.exists():  # not where one or two steps were planned
            (folder / PACE).write_text(pace.file.read_text())
    _write_outcome(folder, filtered)
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)


def _write_outcome(folder: Path, filtered: Sequence[Trace]) -> None:
    """Write the counts by fate and by source, and the matches with the exam."""
    (folder / "counts.json").write_text(json.dumps(counts(filtered)))
    (folder / "sources.json").write_text(json.dumps(counts_by_source(filtered)))
    matches = [
        {
            "source": trace.source,
            "asked": trace.messages[-1]["content"],
            "question": trace.exam.question,
            "match": trace.exam.kind,
            "share": trace.exam.share,
        }
        for trace in filtered
        if trace.exam
    ]
    (folder / "contamination.json").write_text(json.dumps(matches, indent=1))
