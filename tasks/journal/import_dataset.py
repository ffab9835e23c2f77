"""Import a dataset into the journal: preference pairs, rankings, ratings and worked solutions become today's lines."""

import datetime
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conf.storage.home import InputError
from conf.storage.journal import KINDS, Entry, entry_of, lesson_digest, read_object
from conf.storage.journal_file import append, read_file
from tasks.journal.dataset_formats import Row, converter, known_formats

LOADERS = {".json": "json", ".parquet": "parquet"}  # names in the `datasets` package


def import_rows(
    journal: Path,
    source: str,
    split: str = "train",
    subset: str | None = None,
    limit: int | None = None,
    benchmark: str | None = None,
) -> dict[str, Any]:
    """Append a dataset's rows to today's journal in order, except those that an earlier import added.

    Returns how many rows were `added` to `file` or already `known`, and which were `refused` (`row` and `reason`).
    For `source`, see `read_rows`. `benchmark`: the benchmark for worked solutions whose rows name none. Nothing is
    written until all rows have been read. Raises InputError if the source cannot be read, if its columns are not
    recognised, or if no row can become a journal line.
    """
    before = (entry for file in journal.glob("*.jsonl") for _, entry in read_file(file)[0] if entry.imported_from)
    seen, known = set(map(lesson_digest, before)), 0
    entries: list[Entry] = []
    refused: list[dict[str, Any]] = []
    for number, entry in _entries(source, read_rows(source, split, subset, limit), benchmark):
        if isinstance(entry, str):
            refused.append({"row": number, "reason": entry})
        elif (lesson := lesson_digest(entry)) in seen:
            known += 1
        else:
            seen.add(lesson)
            entries.append(entry)
    if not entries and not known:
        if not refused:
            raise InputError(f"{source}: holds no rows; try another --split")
        raise InputError(f"{source}: none of its {len(refused)} rows makes a line; the first: {refused[0]['reason']}")
    return {"file": str(append(journal, entries).file), "added": len(entries), "known": known, "refused": refused}


def read_rows(
    source: str, split: str = "train", subset: str | None = None, limit: int | None = None
) -> Iterator[tuple[int, Row | str]]:
    """Yield each row of a source with its number (from 1). If a JSONL line is invalid, the reason replaces the row.

    `source`: a JSONL, JSON or Parquet file, a folder in the hub's layout, or a hub id. `subset`: the dataset's
    configuration on the hub. `limit`: the maximum number of rows. Raises InputError if the source cannot be read.
    """
    path = Path(source)
    if path.is_file() and path.suffix not in (".jsonl", *LOADERS):
        raise InputError(f"{source}: not a {', '.join(('.jsonl', *LOADERS))} file")
    try:
        rows = _json_lines(path) if path.suffix == ".jsonl" else _loaded(source, split, subset, limit)
        yield from itertools.islice(rows, limit)
    except Exception as error:  # from the network, the hub, its client, or a broken file
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"{source}: cannot be read ({type(error).__name__}: {reason}); it must be a JSONL, JSON or Parquet file, a "
            "folder of them, or a hub id (owner/name), with the split and subset asked for"
        ) from error


def _json_lines(path: Path) -> Iterator[tuple[int, Row | str]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, read_object(line)
                except ValueError as error:
                    yield number, str(error)


def _loaded(source: str, split: str, subset: str | None, limit: int | None) -> Iterator[tuple[int, Row]]:
    import datasets  # takes two seconds to import

    path = Path(source)
    if path.is_file():
        files = os.path.abspath(source)
        rows = datasets.load_dataset(LOADERS[path.suffix], data_files=files, split="train", streaming=True)
    else:
        streaming = path.exists() or limit is not None  # no copy of a private file in the cache, no needless download
        rows = datasets.load_dataset(source, subset, split=split, streaming=streaming)
    yield from enumerate(rows, 1)  # pyrefly: ignore[invalid-yield]


def _entries(
    source: str, rows: Iterator[tuple[int, Row | str]], benchmark: str | None
) -> Iterator[tuple[int, Entry | str]]:
    """Yield each row's number with its entry, or with the reason why it cannot become one."""
    at = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    name = Path(source).resolve().name if Path(source).exists() else source
    is_first = True
    for number, row in rows:
        if isinstance(row, str):
            yield number, row
            continue
        if "version" in row and row.get("kind") in KINDS:
            raise InputError(f"{source}: row {number} is a journal's line: nightschool journal add < {source}")
        if (convert := converter(row)) is None:
            reason = f"columns ({', '.join(row)}) are not recognised; known are {known_formats()}"
            if is_first:
                raise InputError(f"{source}: {reason}")
            yield number, reason
            continue
        is_first = False
        try:
            fields = convert(row, name)
            default = {"benchmark": benchmark} if fields["kind"] == "trace" else {}
            yield number, entry_of({"at": at, "imported_from": name, **default, **fields})
        except ValueError as error:
            yield number, str(error)
        except (LookupError, TypeError, AttributeError) as error:
            yield number, f"not in the format that its columns promise ({error})"
