"""Read journal files, and append whole lines to them, even from several programs at once."""

import datetime
import fcntl
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.durable import make_folder, sync
from conf.storage.home import InputError
from conf.storage.journal import Entry, line_of, parse_line

BLANK, LINE_BREAK = b" \n"  # byte values
UNFINISHED = "cut off or still being written: it has no line break, and is left for the next night"


@dataclass(frozen=True)
class Written:
    """Consecutive lines of a journal file: `line` is the number of the first one, and `count` the number of lines."""

    file: Path
    line: int
    count: int = 1


def append(journal: Path, entries: Iterable[Entry]) -> Written:
    """Append entries to today's file in the journal's folder, force them to disk, and return where they were put.

    Several programs may append at once: a lock (flock) makes them take turns. If the file ends in a torn line because a
    program died, a line break is added first, so that only that line is lost. Raises InputError if writing fails.
    """
    lines = [line_of(entry) for entry in entries]
    file = journal / f"{datetime.date.today()}.jsonl"
    try:
        if not file.exists():
            make_folder(journal, 0o700)
        first = _append(file, b"".join(lines)) if lines else 1
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); make room, or check its permissions") from None
    return Written(file, first, len(lines))


def retract(written: Written) -> None:
    """Blank out lines on disk, so that no night reads them and the other lines keep their numbers.

    Raises InputError if the file cannot be written.
    """
    file = written.file
    try:
        handle = os.open(file, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            lines = file.read_bytes().split(b"\n")
            first = written.line - 1
            gone = b"\n".join(lines[first : first + written.count])
            blank = bytes(byte if byte == LINE_BREAK else BLANK for byte in gone)
            os.pwrite(handle, blank, sum(len(line) + 1 for line in lines[:first]))
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); check its permissions") from None


def _append(file: Path, lines: bytes) -> int:
    """Append lines to a file, and return the number of the first new line."""
    handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        before = file.read_bytes()
        torn = size > 0 and not before.endswith(b"\n")
        rest = memoryview(b"\n" + lines if torn else lines)
        try:
            while rest:  # usually one call; on a full disk, the second call raises the error
                rest = rest[os.write(handle, rest) :]
        except OSError:
            os.ftruncate(handle, size)
            raise
        os.fsync(handle)
        if not size:
            sync(file.parent)  # the new file's entry
        return before.count(b"\n") + torn + 1
    finally:
        os.close(handle)


def read_file(file: Path, today: datetime.date | None = None) -> tuple[list[tuple[int, Entry]], list[dict[str, Any]]]:
    """Return a journal file's valid lines with their numbers, and its invalid lines as `line` (number) and `reason`.

    A line may be dated up to one day after `today` or the day in the file's name, whichever is later. If the last line
    is invalid and has no line break, its reason says that a program may still be writing it, unless the file's day is
    more than two days before `today`. Raises InputError if the file cannot be read.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); check its permissions") from None
    today, named = today or datetime.date.today(), _named_day(file)
    is_over = named is not None and today - named > datetime.timedelta(days=2)
    good: list[tuple[int, Entry]] = []
    bad: list[dict[str, Any]] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            good.append((number, parse_line(line, max(today, named or today))))
        except ValueError as error:
            unfinished = number == len(lines) and not is_over
            bad.append({"line": number, "reason": UNFINISHED if unfinished else str(error)})
    return good, bad


def _named_day(file: Path) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(file.stem)
    except ValueError:
        return None
