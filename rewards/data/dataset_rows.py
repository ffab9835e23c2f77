"""Read a dataset's rows from a local JSONL file or the Hugging Face hub, and reject bad data with a one-line error."""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from conf.storage.home import InputError
from conf.storage.journal import read_object
from conf.storage.log import log
from rewards.verifier import Benchmark, Problem, Split

Item = TypeVar("Item")
Read = TypeVar("Read", bound=Callable[..., list[Problem]])

DATA_VARIABLE = "NIGHTSCHOOL_DATA"
TYPE_NAMES = {str: "a text", list: "a list", int: "a whole number", dict: "an object"}


@dataclass(frozen=True)
class Excluded:
    """A problem that is left out because its truth cannot be used, with the reason."""

    problem_id: str
    reason: str


def data_file(benchmark: str, source: str | None, *names: str) -> Path | None:
    """Return the file to read, or None if neither a source nor `NIGHTSCHOOL_DATA` is set.

    `source` is a folder with the file, directly or in a subfolder named after the benchmark. If it is None, the file is
    in such a subfolder of NIGHTSCHOOL_DATA. `names` are tried in order; `read_rows` reports a missing file.
    """
    data = os.environ.get(DATA_VARIABLE)
    folders = [Path(data) / benchmark] if data else []
    if source is not None:
        folders = [Path(source), Path(source) / benchmark]
    files = [folder / name for folder in folders for name in names]
    return next((file for file in files if file.is_file()), files[0] if files else None)


def read_rows(path: Path, fields: Mapping[str, type]) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file, or of a JSON array (`.json`), each with at least `fields` of the given types.

    Skips blank lines, and decompresses a file whose name ends in `.gz`. Raises an InputError that names file and line
    if the file is missing, unreadable or empty, or if a row is not a JSON object with those fields.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; put it there, or set `source` or {DATA_VARIABLE} to its folder")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = content.split(b"\n")
        if path.suffix == ".json":
            lines = [json.dumps(row).encode() for row in json.loads(content)]
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({error}); copy or download the file again") from error
    places = ((f"{path}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip())
    rows = [checked(_parse(line, where), fields, where) for where, line in places]
    if not rows:
        raise InputError(f"{path}: holds no rows; copy or download the file again")
    return rows


def hub_rows(
    dataset: str, config: str | None, split: str, fields: Mapping[str, type], revision: str | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a split on the hub, in the hub's order, each with at least `fields` of the given types.

    `dataset` is a hub id or a folder in the hub's layout. `config` is one of its configurations (None: the only one).
    `revision` is a branch, tag or commit. Raises InputError if the split cannot be loaded or a row lacks a field.
    """
    import datasets  # takes two seconds, and local files do not need it

    try:
        rows: list[Any] = list(datasets.load_dataset(dataset, config, split=split, revision=revision))
    except Exception as error:  # the network, the hub and its client raise many kinds of errors
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{dataset} cannot be loaded from the hub ({type(error).__name__}: {reason}); "
            f"set `source` or {DATA_VARIABLE} to a folder with the data, or check the network"
        ) from error
    where = f"{dataset}, {f'{config} ' if config else ''}{split}"
    return [checked(row, fields, f"{where} row {index}") for index, row in enumerate(rows)]


def checked(row: Any, fields: Mapping[str, type], where: str) -> dict[str, Any]:
    """Return `row` if it has these fields with these types; otherwise raise an InputError that mentions `where`."""
    for name, kind in fields.items():
        if name not in row:
            every = ", ".join(f'"{field}"' for field in fields)
            raise InputError(f'{where}: the field "{name}" is missing; every row needs {every}')
        if not isinstance(row[name], kind):
            raise InputError(f'{where}: the field "{name}" is not {TYPE_NAMES[kind]}; correct or remove the line')
    return row


def read_once(read: Read) -> Read:
    """Decorate a benchmark's `problems`: each object reads a split once, and returns a new list of it each time."""
    known: WeakKeyDictionary[Any, dict[Split, list[Problem]]] = WeakKeyDictionary()

    @wraps(read)
    def problems(benchmark: Any, split: Split) -> list[Problem]:
        splits = known.setdefault(benchmark, {})
        if split not in splits:
            splits[split] = read(benchmark, split)
        return list(splits[split])

    decorated: Any = problems
    return decorated


def drop_excluded(benchmark: Benchmark, split: Split, items: Iterable[Item | Excluded]) -> list[Item]:
    """Return a split's items without the excluded ones, whose ids are logged and stored in `benchmark.excluded`."""
    every = list(items)
    excluded = [item for item in every if isinstance(item, Excluded)]
    for item in excluded:
        log.warning("%s is excluded: %s", item.problem_id, item.reason)
    if excluded:
        log.warning("%s: %d of %d %s problems are excluded", benchmark.name, len(excluded), len(every), split)
    benchmark.excluded = {**benchmark.excluded, split: [item.problem_id for item in excluded]}
    return [item for item in every if not isinstance(item, Excluded)]


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        return read_object(line)
    except ValueError as error:
        raise InputError(f"{where}: {error}; copy the file again, or correct or remove the line") from None
