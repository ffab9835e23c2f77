"""Distillation: worked solutions become supervised lessons."""

import json
from collections.abc import Sequence
from pathlib import Path

from jinja2 import TemplateError

from conf.schema import BenchmarkConfig, SandboxConfig, StudentConfig, TrainerConfig
from conf.sections.lessons import DistillConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from rewards.benchmarks import configured, is_own
from rewards.verifier import Benchmark
from tasks.distillation.trace_filter import Fate, Trace, by_source, counts, judged, traces_of, with_room
from tasks.journal.lineage import LATER, solution_of
from tasks.stage import Artifact, stage
from tasks.tables import TRACES, read_table
from tasks.training import trainer_process
from tasks.workers import Worker


@stage(retries=2, resources=("trainer", "checkpoints"))
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
) -> None:
    """Keeps the traces whose answer the verifier accepts and whose prompt asks no problem of the exam, and learns them.

    As many as its steps have room for, that is, once each, drawn by the seed `drawn_by`: the others of the journal come
    again on a later night, as do those that are held out (`later.json`; see `tasks/journal/lineage.py`).
    `traces`: stages that wrote a traces table. `unseen`: openings of the conversations that judge the reward model
    (see `models/lessons/preference_data.py`); no trace that begins so is learnt. `benchmarks`: the night's, for those
    of the user's own.
    Without a single trace left the checkpoint stays what it was.
    """
    came = [trace for one in traces for trace in traces_of(read_table(one.folder / "traces.parquet", TRACES))]
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)

    def tokens(trace: Trace) -> tuple[list[int], list[int]]:
        return prompt_tokens(tokenizer, trace.messages, student), answer_tokens(tokenizer, trace.response)

    def unfit(trace: Trace) -> Fate | None:
        try:
            return "too_long" if sum(map(len, tokens(trace))) > max_tokens else None
        except TemplateError:
            return "refused"

    found = judged(came, sandbox, exam_questions, config.traces_per_problem, unfit, unseen, _own(benchmarks))
    found = with_room(found, config.steps * config.batch_size, drawn_by)
    examples = [tokens(trace) for trace in found if trace.fate in ("kept", "unknown")]
    curve: list[dict[str, float]] = []
    if examples:
        checkpoint, curve = trainer.call(
            trainer_process.lesson, checkpoint, trainer_config, config, examples, checkpoints
        )
    _note(folder, found)
    (folder / LATER).write_text(json.dumps(_waiting(came, found)))
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)


def _own(entries: Sequence[BenchmarkConfig]) -> list[Benchmark]:
    """The benchmarks of the user's own among these, each once."""
    found = (configured(entry) for entry in entries)
    return list({one.name: one for one in found if is_own(one)}.values())


def _waiting(came: Sequence[Trace], found: Sequence[Trace]) -> list[str]:
    """Those that a later night may learn, by what they said before they were rewritten."""
    return sorted(
        solution_of(one.messages, one.response)
        for one, judged in zip(came, found, strict=True)
        if judged.fate in ("later", "held_out")
    )


def _note(folder: Path, traces: Sequence[Trace]) -> None:
    """Writes how many traces had which fate, in all and by source, and which ask the exam's."""
    (folder / "counts.json").write_text(json.dumps(counts(traces)))
    (folder / "sources.json").write_text(json.dumps(by_source(traces)))
    hits = [
        {
            "source": trace.source,
            "asked": trace.messages[-1]["content"],
            "question": trace.exam.question,
            "match": trace.exam.kind,
            "share": trace.exam.share,
        }
        for trace in traces
        if trace.exam
    ]
    (folder / "contamination.json").write_text(json.dumps(hits, indent=1))
