"""Rows of a dataset, from a local JSONL file or from the Hugging Face hub. Bad data is refused in one clear line."""

import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conf.storage.home import InputError

DATA_VARIABLE = "NIGHTSCHOOL_DATA"
TYPE_NAMES = {str: "a text", list: "a list", int: "a whole number", dict: "an object"}


def data_file(benchmark: str, filename: str, source: str | None) -> Path | None:
    """Return the file to read, or None where neither a source nor `NIGHTSCHOOL_DATA` is set.

    `source` holds the file itself, or holds it in a subfolder named after the benchmark; `NIGHTSCHOOL_DATA` holds such
    a subfolder. The file need not exist: `read_rows` reports a missing one.
    """
    if source is not None:
        direct, nested = Path(source) / filename, Path(source) / benchmark / filename
        return nested if nested.is_file() and not direct.is_file() else direct
    data = os.environ.get(DATA_VARIABLE)
    return Path(data) / benchmark / filename if data else None


def rows_of(
    file: Path | None, fields: Mapping[str, type], dataset: str, config: str | None, split: str, revision: str | None
) -> list[dict[str, Any]]:
    """Return the rows of a local file, or those of the hub's dataset where `file` is None. Raises InputError."""
    return hub_rows(dataset, config, split, fields, revision) if file is None else read_rows(file, fields)


def read_rows(path: Path, fields: Mapping[str, type]) -> list[dict[str, Any]]:
    """Return a JSONL file's rows, each with at least `fields` of the given types; blank lines are skipped.

    A file whose name ends in `.gz` is unpacked. Raises InputError, which names file and line, for a file that is
    missing, unreadable or empty and for a line that is not a JSON object with those fields.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; put it there, or set `source` or {DATA_VARIABLE} to its folder")
    rows = [
        checked(_parse(line, f"{path}, line {number}"), fields, f"{path}, line {number}")
        for number, line in enumerate(_content(path).split(b"\n"), 1)
        if line.strip()
    ]
    if not rows:
        raise InputError(f"{path}: holds no rows; copy or download the file again")
    return rows


def hub_rows(
    dataset: str, config: str | None, split: str, fields: Mapping[str, type], revision: str | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a split on the hub, in its order, each with at least `fields` of the given types.

    `dataset` is a hub id (or a folder in the hub's layout), `config` one of its configurations (None: its only one),
    `revision` a branch, tag or commit. Raises InputError where the split cannot be loaded or a row lacks a field.
    """
    import datasets  # takes two seconds, and local files do not need it

    try:
        rows = list(datasets.load_dataset(dataset, config, split=split, revision=revision))
    except Exception as error:  # the network, the hub and its client raise many kinds
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{dataset} cannot be loaded from the hub ({type(error).__name__}: {reason}); "
            f"set `source` or {DATA_VARIABLE} to a folder with the data, or check the network"
        ) from error
    where = f"{dataset}, {f'{config} ' if config else ''}{split}"
    return [checked(row, fields, f"{where} row {index}") for index, row in enumerate(rows)]


def checked(row: Any, fields: Mapping[str, type], where: str) -> dict[str, Any]:
    """Return `row` if it is an object with those fields. Raises InputError, which begins with `where`, if not."""
    if not isinstance(row, dict):
        raise InputError(f"{where}: not a JSON object; expected {{{_quoted(list(fields))}}}")
    for name, kind in fields.items():
        if name not in row:
            raise InputError(f'{where}: the field "{name}" is missing; every row needs {_quoted(list(fields))}')
        if not isinstance(row[name], kind):
            type_name = TYPE_NAMES.get(kind, kind.__name__)
            raise InputError(f'{where}: the field "{name}" is not {type_name}; correct or remove the line')
    return row


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: not a complete gzip file ({error}); copy or download the file again") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error


def _parse(line: bytes, where: str) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at column {error.colno}"
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 at byte {error.start + 1}"
    except (ValueError, RecursionError):
        reason = "a number too long or objects nested too deeply"
    raise InputError(f"{where}: not valid JSON ({reason}); copy the file again, or correct or remove the line")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
