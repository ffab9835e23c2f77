"""Append whole lines to journal files, also from several programs at once, and read the lines that are complete."""

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

BLANK, LINE_BREAK = b" \n"  # as bytes


@dataclass(frozen=True)
class Written:
    """Whole lines of a journal file, from one byte offset to another."""

    file: Path
    start: int
    end: int

    @property
    def line(self) -> int:
        """The number of the first of them."""
        with self.file.open("rb") as file:
            return file.read(self.start).count(b"\n") + 1


def append(journal: Path, entries: Iterable[Entry]) -> Path:
    """Append entries to today's file in the journal's folder, force them to the disk, and return the file.

    Several programs may do so at once: a lock (flock) makes them take turns. If a program died in the middle of a line,
    that line is ended first, and only it is lost (to the quarantine). Raises InputError if the file cannot be written.
    """
    return write(journal, entries).file


def write(journal: Path, entries: Iterable[Entry]) -> Written:
    """Append entries as `append` does, and say where they are."""
    lines = b"".join(map(line_of, entries))
    file = journal / f"{datetime.date.today()}.jsonl"
    try:
        if not file.exists():
            make_folder(journal, 0o700)
        start = _append(file, lines) if lines else 0
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); make room, or check its permissions") from None
    return Written(file, start, start + len(lines))


def retract(written: Written) -> None:
    """Make lines blank, on the disk: no night reads them, and the offsets of the others stay as they are.

    Raises InputError if the file cannot be written.
    """
    file = written.file
    try:
        handle = os.open(file, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            lines = os.pread(handle, written.end - written.start, written.start)
            os.pwrite(handle, bytes(byte if byte == LINE_BREAK else BLANK for byte in lines), written.start)
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); check its permissions") from None


def _append(file: Path, lines: bytes) -> int:
    """Append lines to a file, and return the offset at which they begin."""
    handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        rest = memoryview(b"\n" + lines if torn else lines)
        start = size + torn
        try:
            while rest:  # usually one call; on a full disk the second one raises the error
                rest = rest[os.write(handle, rest) :]
        except OSError:
            os.ftruncate(handle, size)
            raise
        os.fsync(handle)
        if not size:
            sync(file.parent)  # its name
        return start
    finally:
        os.close(handle)


def whole_lines(content: bytes, start: int = 0, ended: bool = False) -> tuple[list[tuple[int, bytes]], int]:
    """Return the lines of a file from a byte offset on, with their numbers, and the offset after the last of them.

    A last line without a line break counts if it is a valid entry, or if writing has `ended`; otherwise it is still
    being written. Blank lines are left out.
    """
    number = content.count(b"\n", 0, start) + 1
    *lines, last = content[start:].split(b"\n")
    end = len(content) - len(last)
    if ended or _is_entry(last):
        lines.append(last)
        end = len(content)
    return [(index, line) for index, line in enumerate(lines, number) if line.strip()], max(start, end)


def read_file(file: Path) -> tuple[list[tuple[int, Entry]], list[dict[str, Any]]]:
    """Return the valid lines of a journal file with their numbers, and the others with number (`line`) and `reason`.

    Raises InputError if the file cannot be read.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); check its permissions") from None
    today = datetime.date.today()
    good: list[tuple[int, Entry]] = []
    bad: list[dict[str, Any]] = []
    lines, end = whole_lines(content, ended=is_over(file, today))
    for number, line in lines:
        try:
            good.append((number, parse_line(line, latest_day(file, today))))
        except ValueError as error:
            bad.append({"line": number, "reason": str(error)})
    if content[end:].strip():
        reason = "cut off or still being written: it has no line break, and is left for the next night"
        bad.append({"line": content.count(b"\n") + 1, "reason": reason})
    return good, bad


def latest_day(file: Path, today: datetime.date) -> datetime.date:
    """Return the latest date that a file's lines may have: today, or the day in the file's name."""
    return max(today, _named_day(file) or today)


def is_over(file: Path, today: datetime.date) -> bool:
    """Return whether a file is complete: named after a day before yesterday, which has ended in every time zone."""
    named = _named_day(file)
    return named is not None and today - named > datetime.timedelta(days=1)


def _named_day(file: Path) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(file.stem)
    except ValueError:
        return None


def _is_entry(line: bytes) -> bool:
    try:
        parse_line(line)
    except ValueError:
        return False
    return True
