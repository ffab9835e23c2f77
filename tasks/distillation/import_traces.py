"""Read the configured files of worked solutions into a table of traces, once per night."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conf.sections.lessons import TraceFile
from conf.storage.home import InputError
from conf.storage.journal import Trace, entry_of
from rewards.data import benchmarks
from rewards.data.solution_formats import read_question
from rewards.verifier import Problem
from tasks.journal.dataset_formats import worked_solution
from tasks.journal.import_dataset import read_rows
from tasks.journal.read import table_row
from tasks.journal.tables import QUARANTINE, TRACES
from tasks.stage import stage
from tasks.tables import write_table


@stage()
def import_traces(folder: Path, *, files: tuple[TraceFile, ...], own: Mapping[str, str]) -> None:
    """Write the files' worked solutions as traces, and quarantine bad rows.

    Puts questions into their benchmark's prompt format where possible. `own`: the names of the night's own benchmarks,
    by `module:Class`; rows that name one are left as they are. Raises InputError if a file cannot be read.
    """
    rows: list[dict[str, Any]] = []
    quarantine: list[dict[str, Any]] = []
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
    benchmark = benchmarks.load(trace.benchmark) if trace.benchmark and trace.benchmark not in own.values() else None
    *before, last = trace.messages
    question = read_question(last.content, benchmark)
    if benchmark is not None and benchmark.answer_line is not None:  # other prompts show tests, which traces lack
        question = benchmark.prompt(Problem("", benchmark.name, question, ""))
    asked = [*before, last.model_copy(update={"content": question})]
    return table_row(trace.model_copy(update={"messages": asked}))
