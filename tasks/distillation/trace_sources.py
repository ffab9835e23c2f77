"""Worked solutions from configured files, the benchmarks, and the student itself (its own right answers)."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.sections.lessons import TraceFile
from conf.storage.home import InputError
from conf.storage.journal import Trace, entry_of
from rewards.data.benchmarks import configured, load
from rewards.data.solution_formats import read_question
from rewards.verifier import Problem
from tasks.distillation.attempts import earlier_rounds, practised_problems, rounds_of
from tasks.distillation.trace_filter import DATASET
from tasks.journal.dataset_formats import worked_solution
from tasks.journal.import_dataset import read_rows
from tasks.journal.read import table_row
from tasks.journal.tables import QUARANTINE, TRACES
from tasks.rollouts.draw import level_order, shares
from tasks.stage import Artifact, stage
from tasks.tables import Row, write_table

EASIEST = 8  # a benchmark's pool of easiest problems is this many times its share
HARD = 0.5  # a problem with a lower solve rate is hard


@stage()
def import_traces(folder: Path, *, files: tuple[TraceFile, ...], own: Mapping[str, str]) -> None:
    """Write the files' worked solutions as traces, and quarantine bad rows.

    Puts questions into their benchmark's prompt format where possible. `own`: the names of the night's own benchmarks,
    by `module:Class`; rows that name one are left as they are. Raises InputError if a file cannot be read.
    """
    rows, quarantine = list[Row](), list[Row]()
    for file in files:
        check_source(file.source)
        name = Path(file.source).name
        for number, row in read_rows(file.source):
            try:
                rows.append(_trace(row, file, own) | {"source": f"{name}:{number}"})
            except (ValueError, InputError) as error:
                quarantine.append({"file": name, "line": number, "reason": str(error)})
    write_table(folder / "traces.parquet", TRACES, rows)
    write_table(folder / "quarantine.parquet", QUARANTINE, quarantine)


def check_source(source: str) -> None:
    """Raise InputError if a file of traces does not exist. A hub id is not checked until the night reads it."""
    path = Path(source)
    is_file = path.suffix in (".jsonl", ".json", ".parquet") or path.is_absolute()
    if is_file and not path.is_file():
        raise InputError(f"distill.files: {source}: no such file; give its path, or the id of a dataset on the hub")


def _trace(row: Mapping[str, Any] | str, file: TraceFile, own: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(row, str):
        raise ValueError(row)
    default = file.benchmark and own.get(file.benchmark, file.benchmark)
    trace = entry_of({"benchmark": default, **worked_solution(row, file.teacher)})
    assert isinstance(trace, Trace)
    benchmark = load(trace.benchmark) if trace.benchmark and trace.benchmark not in own.values() else None
    *before, last = trace.messages
    question = read_question(last.content, benchmark)
    if benchmark is not None and benchmark.answer_line is not None:  # other prompts show tests, which traces lack
        question = benchmark.prompt(Problem("", benchmark.name, question, ""))
    asked = [*before, last.model_copy(update={"content": question})]
    return table_row(trace.model_copy(update={"messages": asked}))


@stage()
def reference_solutions(
    folder: Path, *, sources: tuple[BenchmarkConfig, ...], sandbox: SandboxConfig, count: int, seed: str
) -> None:
    """Write the solutions to `count` training problems, divided among the benchmarks in proportion to their weights.

    Each benchmark's share is drawn from its easiest problems: those with the lowest levels and, within a level, the
    shortest solutions. A benchmark without solutions gets no share.
    """
    benchmarks = [(entry, configured(entry, sandbox)) for entry in sources]
    solved = [(entry, benchmark, found) for entry, benchmark in benchmarks if (found := benchmark.solutions())]
    rows: list[Row] = []
    weights = [entry.weight for entry, _, _ in solved]
    for (entry, benchmark, found), share in zip(solved, shares(weights, count), strict=True):
        easiest = sorted(found, key=lambda each: (level_order(each[0].level or ""), len(each[1]), each[0].problem_id))
        pool = easiest[: EASIEST * share]
        for problem, solution in random.Random(f"{seed} {entry.label}").sample(pool, min(share, len(pool))):
            rows.append(
                {
                    "messages": json.dumps([{"role": "user", "content": benchmark.prompt(problem)}]),
                    "response": solution,
                    "teacher": DATASET,
                    "benchmark": benchmark.name,
                    "truth": None if benchmark.environment else problem.truth,  # an episode is neither right nor wrong
                    "source": f"{benchmark.name}:{problem.problem_id}",
                }
            )
    write_table(folder / "traces.parquet", TRACES, rows)


@stage(resources=("night",))
def own_answers(
    folder: Path,
    *,
    model: str,
    scores: tuple[Artifact, ...],
    upto: int,
    per_problem: int,
    date: str,
    night: Path,
) -> None:
    """Write a traces table of the student's correct answers to hard problems, tonight and on recent nights.

    `model`: the model's configured name, which identifies its earlier nights. `scores`: the scores of tonight's rounds
    before this lesson. `upto`: the number of the last of these rounds. Keeps the `per_problem` shortest different
    answers to each problem, because they have the fewest incidental details. This is rejection-sampling fine-tuning
    (Yuan et al. 2023, arXiv:2308.01825), which gains most from many different solutions, according to the paper.
    """
    rounds = [*earlier_rounds(night.parent, date, model), *rounds_of(night, upto)]
    hard = [entry for entry in practised_problems(rounds, answers=True) if 0 < entry.solved < HARD * entry.tried]
    rows = [
        entry.trace(response, "itself", "own answers")
        for entry in hard
        for response in sorted(set(entry.correct), key=lambda text: (len(text), text))[:per_problem]
    ]
    write_table(folder / "traces.parquet", TRACES, rows)
