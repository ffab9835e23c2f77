"""Distillation: worked solutions become supervised lessons."""

import json
from collections.abc import Sequence
from pathlib import Path

from jinja2 import TemplateError

from conf.lessons import DistillConfig
from conf.schema import SandboxConfig, StudentConfig, TrainerConfig
from models.policy import answer_tokens, load_tokenizer, prompt_tokens
from tasks import learner
from tasks.lineage import LATER
from tasks.stage import Artifact, stage
from tasks.tables import TRACES, read_table
from tasks.trace_filter import Fate, Trace, by_source, counts, judged, traces_of, with_room
from tasks.workers import Worker


@stage(tags=["trainer"], retries=2, means=("trainer", "checkpoints"))
def distill(
    folder: Path,
    *,
    traces: tuple[Artifact, ...],
    checkpoint: Path,
    config: DistillConfig,
    trainer_config: TrainerConfig,
    student: StudentConfig,
    sandbox: SandboxConfig,
    exam_questions: tuple[str, ...],
    unseen: tuple[str, ...],
    max_tokens: int,
    checkpoints: Path,
    trainer: Worker,
) -> None:
    """Keeps the traces whose answer the verifier accepts and whose prompt asks no problem of the exam, and learns them.

    As many as its steps have room for, that is, once each: the others of the journal come again on a later night
    (`later.json`: their places; see `tasks/lineage.py`).
    `traces`: stages that wrote a traces table. `unseen`: openings of the conversations that judge the reward model
    (see `models/picks.py`); no trace that begins so is learnt. Without a single trace left the checkpoint stays what it
    was.
    """
    found = [trace for one in traces for trace in traces_of(read_table(one.folder / "traces.parquet", TRACES))]
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)

    def tokens(trace: Trace) -> tuple[list[int], list[int]]:
        return prompt_tokens(tokenizer, trace.messages, student), answer_tokens(tokenizer, trace.response)

    def unfit(trace: Trace) -> Fate | None:
        try:
            return "too_long" if sum(map(len, tokens(trace))) > max_tokens else None
        except TemplateError:
            return "refused"

    found = judged(found, sandbox, exam_questions, config.traces_per_problem, unfit, unseen)
    found = with_room(found, config.steps * config.batch_size, trainer_config.seed)
    examples = [tokens(trace) for trace in found if trace.fate in ("kept", "unknown")]
    curve: list[dict[str, float]] = []
    if examples:
        checkpoint, curve = trainer.call(learner.lesson, checkpoint, trainer_config, config, examples, checkpoints)
    _note(folder, found)
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)


def _note(folder: Path, traces: Sequence[Trace]) -> None:
    """Writes how many traces had which fate, in all and by source, which of them wait, and which ask the exam's."""
    (folder / "counts.json").write_text(json.dumps(counts(traces)))
    (folder / "sources.json").write_text(json.dumps(by_source(traces)))
    (folder / LATER).write_text(json.dumps([trace.source for trace in traces if trace.fate == "later"]))
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
