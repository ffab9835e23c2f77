"""Files of worked solutions: read once a night, into a table of traces."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conf.sections.benchmark import PROGRAMS
from conf.sections.lessons import TraceFile
from conf.storage.home import InputError
from rewards import benchmarks
from rewards.data.dataset_rows import hub_rows
from rewards.data.solution_formats import read_question, truth_of
from rewards.verifier import Benchmark, Problem
from tasks.stage import stage
from tasks.tables import QUARANTINE, TRACES, write_table

# The first of these that a row has.
QUESTIONS = ("prompt", "question", "problem", "instruction", "messages")
RESPONSES = ("response", "solution", "completion", "output")
SURROGATE = re.compile(r"[\ud800-\udfff]")


@stage()
def import_traces(folder: Path, *, files: tuple[TraceFile, ...]) -> None:
    """Writes the files' worked solutions as traces, each asked as its benchmark asks; rows without one to a quarantine.

    Raises InputError where a file is not there, or is none.
    """
    rows: list[dict[str, Any]] = []
    quarantine: list[dict[str, Any]] = []
    for file in files:
        name = Path(file.source).name
        for line, content in _lines(file.source):
            try:
                rows.append(_trace(_row(content), file) | {"source": f"{name}:{line}"})
            except (ValueError, InputError) as error:
                quarantine.append({"file": name, "line": line, "reason": str(error)})
    write_table(folder / "traces.parquet", TRACES, rows)
    write_table(folder / "quarantine.parquet", QUARANTINE, quarantine)


def check_source(source: str) -> None:
    """Raises InputError where a file of traces is named that is not there; what the hub has shows itself later."""
    path = Path(source)
    is_file = path.suffix in (".jsonl", ".json", ".parquet") or path.is_absolute()
    if is_file and not path.is_file():
        raise InputError(f"distill.files: {source}: no such file; give its path, or the id of a dataset of the hub")


def _lines(source: str) -> Iterator[tuple[int, bytes | Mapping[str, Any]]]:
    """The rows of a JSONL or Parquet file, or of the training split of a hub's dataset, numbered from 1.

    JSONL is read line by line: `datasets` refuses a whole file for one bad line, and keeps a copy of it elsewhere.
    """
    path = Path(source)
    check_source(source)
    if not path.is_file():
        rows: Any = hub_rows(source, None, "train", {})
    elif path.suffix == ".parquet":
        try:
            rows = pq.read_table(path).to_pylist()
        except (OSError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"distill.files: {source}: no Parquet file ({reason}); copy it again") from None
    else:
        rows = path.read_bytes().split(b"\n")
    yield from ((number, row) for number, row in enumerate(rows, 1) if not isinstance(row, bytes) or row.strip())


def _row(content: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    """A line of JSONL as an object. Raises ValueError, with a reason of one line, where it is none."""
    if not isinstance(content, bytes):
        return content
    try:
        row = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("not JSON (nested too deep)") from None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return row


def _trace(row: Mapping[str, Any], file: TraceFile) -> dict[str, Any]:
    """The row as one of the traces table. Raises ValueError where it has no question or no solution."""
    name = _text(row.get("benchmark")) or file.benchmark
    benchmark = benchmarks.load(name) if name and name not in PROGRAMS else None
    messages = _messages(_first(row, QUESTIONS, "question"), benchmark)
    if messages[-1]["role"] == "assistant" and not any(row.get(column) for column in RESPONSES):
        *messages, answered = messages
        response = answered["content"]
    else:
        response = _text(_first(row, RESPONSES, "solution"))
    if not messages or messages[-1]["role"] != "user" or not response.strip():
        raise ValueError("no question of a user, or an empty solution")
    truth = truth_of(row)
    if SURROGATE.search("".join([*(turn["content"] for turn in messages), response, truth or ""])):
        raise ValueError("half of a surrogate pair, which is no text")
    return {
        "messages": json.dumps(messages),
        "response": response,
        "teacher": _text(row.get("teacher")) or file.teacher,
        "benchmark": name or None,
        "truth": truth,
    }


def _first(row: Mapping[str, Any], columns: tuple[str, ...], what: str) -> Any:
    found = next((row[column] for column in columns if row.get(column)), None)
    if found is None:
        raise ValueError(f"no {what}: none of the columns {', '.join(columns)}")
    return found


def _messages(asked: Any, benchmark: Benchmark | None) -> list[dict[str, str]]:
    """A conversation, or a text that is its only turn; the last question is asked as the benchmark asks it."""
    if isinstance(asked, str):
        asked = [{"role": "user", "content": asked}]
    if not isinstance(asked, list) or not all(_is_message(turn) for turn in asked):
        raise ValueError("the question is neither a text nor a list of messages with role and content")
    turns = [{"role": turn["role"], "content": turn["content"]} for turn in asked]
    place = max((place for place, turn in enumerate(turns) if turn["role"] == "user"), default=None)
    if place is not None:
        question = read_question(turns[place]["content"], benchmark)
        asks = question if benchmark is None else benchmark.prompt(Problem("", benchmark.name, question, ""))
        turns[place]["content"] = asks
    return turns


def _is_message(turn: Any) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)


def _text(value: Any) -> str:
    """A text, the content of the last of several messages, or a number or list as it is written."""
    if isinstance(value, list) and value and all(_is_message(turn) for turn in value):
        return value[-1]["content"]
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
