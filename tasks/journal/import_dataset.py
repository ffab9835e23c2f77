"""Import: what people already have (pairs, rankings, chats) becomes lines of today's journal, once."""

import datetime
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.home import InputError
from conf.storage.journal import Entry, entry_of, lesson_of
from conf.storage.journal_file import append, read_file
from tasks.journal.dataset_formats import converter, known_forms

FILES = {".jsonl": "json", ".json": "json", ".parquet": "parquet"}


@dataclass(frozen=True)
class Imported:
    """What became of a data set's rows: lines added, and to which file; known already; refused, by row and reason."""

    file: Path
    added: int
    known: int
    refused: list[dict[str, Any]]


def import_rows(
    journal: Path,
    source: str,
    split: str = "train",
    subset: str | None = None,
    limit: int | None = None,
    benchmark: str | None = None,
) -> Imported:
    """Adds a data set's rows to today's journal, in their order, but those that an earlier import brought.

    `source` is a JSONL or Parquet file, a folder in the hub's layout, or a hub id; `subset` its configuration; `limit`
    the rows to read at most; `benchmark` whose problems worked solutions solve, where a row does not say. Nothing is
    written before all rows are read. Raises InputError, one line, where the source cannot be read, where its columns
    are of no form that is known, and where not one row makes a line.
    """
    seen, known = _imported_before(journal), 0
    entries: list[Entry] = []
    refused: list[dict[str, Any]] = []
    for number, entry in _entries(source, _rows(source, split, subset, limit), benchmark):
        if isinstance(entry, str):
            refused.append({"row": number, "reason": entry})
        elif (lesson := lesson_of(entry)) in seen:
            known += 1
        else:
            seen.add(lesson)
            entries.append(entry)
    if refused and not entries and not known:
        raise InputError(f"{source}: none of its {len(refused)} rows makes a line; the first: {refused[0]['reason']}")
    return Imported(append(journal, entries), len(entries), known, refused)


def _imported_before(journal: Path) -> set[str]:
    return {
        lesson_of(entry) for file in journal.glob("*.jsonl") for _, entry in read_file(file)[0] if entry.imported_from
    }


def _entries(source: str, rows: Iterator[dict[str, Any]], benchmark: str | None) -> Iterator[tuple[int, Entry | str]]:
    """Each row's number, the first is 1, and its entry, or why it makes none."""
    at = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    name = Path(source).resolve().name if Path(source).exists() else source
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source}: holds no rows; look for another --split")
    if (convert := converter(first)) is None:
        raise InputError(f"{source}: its columns ({', '.join(first)}) are of no form that is known: {known_forms()}")
    for number, row in enumerate(itertools.chain([first], rows), 1):
        try:
            fields = convert(row, name)
            whose = {"benchmark": benchmark} if fields["kind"] == "trace" else {}
            yield number, entry_of({"at": at, "imported_from": name, **whose, **fields})
        except ValueError as error:
            yield number, str(error)
        except (KeyError, TypeError, AttributeError) as error:
            yield number, f"not in the form that its columns promise ({error})"


def _rows(source: str, split: str, subset: str | None, limit: int | None) -> Iterator[dict[str, Any]]:
    """The rows one by one, as `datasets` streams them: no copy of a private file stays in its cache."""
    import datasets  # two seconds to import

    path = Path(source)
    kind = FILES.get(path.suffix) if path.is_file() else None
    if path.is_file() and kind is None:
        raise InputError(f"{source}: a {path.suffix or 'nameless'} file; {', '.join(FILES)} can be read")
    try:
        if kind:
            rows = datasets.load_dataset(kind, data_files=os.path.abspath(source), split="train", streaming=True)
        else:
            rows = datasets.load_dataset(source, subset, split=split, streaming=True)
        yield from itertools.islice(rows, limit)
    except Exception as error:  # whatever the network, the hub, its client or a broken file come up with
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"{source}: cannot be read ({type(error).__name__}: {reason}); a file (JSONL, Parquet), a folder of such, "
            "or a hub id (owner/name) is expected; --split and --subset choose a part of it"
        ) from error
