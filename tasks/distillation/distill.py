"""Distillation: supervised training on worked solutions."""

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jinja2 import TemplateError

from conf.schema import BenchmarkConfig, SandboxConfig, StudentConfig, TrainerConfig
from conf.sections.lessons import DistillConfig
from models.hf.checkpoint import learned
from models.hf.loading import load_tokenizer, prompt_tokens
from models.lessons.pace import Pace, examples_used
from models.lessons.preference_data import EpisodeExample
from rewards.data.benchmarks import configured
from rewards.verifier import Benchmark, Problem
from tasks.distillation.demonstrations import example_maker
from tasks.distillation.trace_filter import (
    LEARNED,
    Fate,
    Trace,
    benchmark_of,
    draw_lessons,
    filter_traces,
    problems_by_prompt,
    read_traces,
    write_fates,
)
from tasks.evaluation.answering import answer_questions
from tasks.rollouts.verified import Player
from tasks.stage import Artifact, stage
from tasks.tables import read_rollouts
from tasks.training import trainer_process
from tasks.workers import engine_process
from tasks.workers.worker import Worker

UNSETTLED = ("later", "held_out", "too_long")  # fates of traces that a later night may teach
PACE = "pace.json"  # the numbers of steps taken and planned, if the lesson has a pace


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
    answering: Player | None = None,
    pace: Pace | None = None,
) -> None:
    """Train on the traces that the verifier accepts or cannot judge, except those that match an exam problem.

    Draws as many traces as the configured steps can hold, each at most once, with the seed `drawn_by`; a `pace` may
    allow fewer steps. Skips journal lessons that the checkpoint has already learned. Traces that are held out, too long
    or find no room are not marked as learned, so that a later night can teach them. If no traces remain, the checkpoint
    is unchanged. `traces`: artifacts that each contain a traces table. `benchmarks`: the night's benchmarks, including
    the user's own. `unseen`: openings of conversations that test the reward model; traces with such an opening are not
    trained on. `answering`: the student as a player; if given, problems that it already solves are skipped.
    `rehearsed`: the student's own answers to everyday prompts (see `tasks/distillation/rehearsal.py`), which are mixed
    with the traces. These answers are not used if no traces remain.
    """
    started = time.perf_counter()
    known = learned(checkpoint)
    read = [trace for artifact in traces for trace in read_traces(artifact.folder) if trace.lesson not in known]
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    example = example_maker(map(configured, benchmarks), tokenizer, student, max_tokens)

    def unfit(trace: Trace) -> Fate | None:
        try:
            made = example(trace)
        except TemplateError:
            return "refused"
        except LookupError:  # an episode of a problem that the environment does not have
            return "unreadable"
        length = made.longest if isinstance(made, EpisodeExample) else sum(map(len, made))
        return "too_long" if length > max_tokens else None

    user_benchmarks = [configured(entry) for entry in benchmarks if ":" in entry.name]
    filtered = filter_traces(read, sandbox, exam_questions, config.traces_per_problem, unfit, unseen, user_benchmarks)
    own = read_rollouts(rehearsed.folder / "rollouts.parquet") if rehearsed else []
    filtered = draw_lessons(filtered, config.steps * config.batch_size - len(own), drawn_by)
    if answering is not None:
        filtered = mark_known(filtered, answering, sandbox, user_benchmarks)
    chosen = [index for index, trace in enumerate(filtered) if trace.fate in LEARNED]
    examples = [example(filtered[index]) for index in chosen]
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
            pace and pace.left(started),  # minus the time spent since the stage started
            [filtered[index].lesson for index in chosen],
            [trace.lesson for trace in filtered if trace.lesson and trace.fate not in (*LEARNED, *UNSETTLED)],
        )
        taught = examples_used(len(examples), config, trainer_config.seed, len(curve))
        for index in (index for number, index in enumerate(chosen) if number not in taught):
            filtered[index] = replace(filtered[index], fate="later")
        if pace is not None and pace.file.exists():  # absent if only one or two steps were planned
            (folder / PACE).write_text(pace.file.read_text())
    write_fates(folder, filtered)
    (folder / "curve.json").write_text(json.dumps(curve))
    (folder / "checkpoint.txt").write_text(checkpoint.name)


def mark_known(
    traces: Sequence[Trace], player: Player, sandbox: SandboxConfig, user_benchmarks: Sequence[Benchmark]
) -> list[Trace]:
    """Return all traces. Those whose problem the player already solves get the fate `known`.

    Checks only traces with a trainable fate (see `LEARNED`), a truth and a benchmark. Then puts the engine to sleep.
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
        known = problems_by_prompt(benchmark) if benchmark in user_benchmarks else {}
        problems = [
            known.get(text := trace.messages[-1]["content"])
            or Problem(str(row), benchmark.name, text, trace.truth or "")
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
