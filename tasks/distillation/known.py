"""Find the worked solutions that a student does not need because it already solves their problems."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from conf.schema import SandboxConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.verifier import Benchmark, Problem
from tasks.distillation.trace_filter import LEARNED, Trace, benchmark_of
from tasks.evaluation.answering import answer_questions
from tasks.rollouts.episodes import Player
from tasks.workers import engine_process


def mark_known(
    traces: Sequence[Trace], player: Player, sandbox: SandboxConfig, user_benchmarks: Sequence[Benchmark]
) -> list[Trace]:
    """Return the traces, with fate `known` for those worth learning whose problems the player already solves.

    A trace without a truth, or of an unknown benchmark, never gets this fate. The engine is put to sleep afterwards.
    """
    rows: dict[str | None, list[int]] = defaultdict(list)
    for row, trace in enumerate(traces):
        if trace.fate in LEARNED and trace.truth is not None:
            rows[trace.benchmark].append(row)
    marked = list(traces)
    tokenizer = load_tokenizer(player.checkpoint, player.student.trust_remote_code)
    for name, asked in rows.items():
        if (benchmark := benchmark_of(name, sandbox, user_benchmarks)) is None:
            continue
        chosen = [traces[row] for row in asked]
        problems = [
            Problem(str(row), benchmark.name, trace.messages[-1]["content"], trace.truth or "")
            for row, trace in enumerate(chosen)
        ]
        prompts = [prompt_tokens(tokenizer, trace.messages, player.student) for trace in chosen]
        answers = answer_questions(benchmark, problems, prompts, player)
        for row, answer in zip(asked, answers, strict=True):
            if answer["correct"]:
                marked[row] = replace(traces[row], fate="known")
    if rows:
        player.engine.call(engine_process.sleep)
    return marked
