"""Writes that a crash cannot halve, and that a full disk ends with a clear line."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conf.storage.home import NightError


def sync(path: Path) -> None:
    """Forces one file's content, or one folder's entries, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Makes a folder and those above it that are missing, so that their names outlive a power cut."""
    if not folder.parent.is_dir():
        make_folder(folder.parent, mode)
    folder.mkdir(mode, exist_ok=True)
    sync(folder.parent)


FULL = ("No space left on device", "disk is full", "Disk quota exceeded")  # the system's words, and SQLite's


class DiskFullError(NightError):
    """The disk has no room for what was being written. What was there before still stands."""


def write_atomically(file: Path, text: str) -> None:
    """Writes a text so that a reader sees the old or the new, never a half, also after a power cut.

    Raises DiskFullError where there is no room for it.
    """
    draft = file.with_name(f"{file.name}.draft")
    with room_for(draft, len(text.encode())), draft.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(file)
    sync(file.parent)


@contextmanager
def room_for(path: Path, needed: int = 0) -> Iterator[None]:
    """Within, a file or folder is written that takes about `needed` bytes; 0: nobody knows.

    Raises DiskFullError where the disk has no room, before anything is written or in the midst of it; what was half
    written is removed.
    """
    if needed > _free(path):
        raise full_disk(path, needed)
    try:
        yield
    except Exception as error:
        if not disk_is_full(error):
            raise
        written = bytes_of(path)
        _remove(path)
        if isinstance(error, DiskFullError):  # whoever wrote within knows better what was needed
            raise
        raise full_disk(path, needed, written) from error


def disk_is_full(error: BaseException) -> bool:
    """Whether an error is that of a full disk: the system's own, or in the words of a library."""
    number = getattr(error, "errno", None)
    return isinstance(error, DiskFullError) or number in (errno.ENOSPC, errno.EDQUOT) or _speaks_of_it(str(error))


def full_disk(path: Path, needed: int = 0, written: int = 0) -> DiskFullError:
    """The error that says where, how much was needed (bytes; 0: unknown, but more than was `written`), what is free."""
    room = f"about {needed / 1e6:.1f} MB are needed" if needed else f"more than {written / 1e6:.1f} MB are needed"
    return DiskFullError(
        f"{path}: the disk is full: {room}, and {_free(path) / 1e6:.1f} MB are free; "
        "make room, and the same command goes on"
    )


def bytes_of(path: Path) -> int:
    """The size of a file, or of all files in a folder; 0 where nothing is there."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def sync_folder(folder: Path) -> None:
    """Forces the folder's files and its own entries to the disk."""
    for file in folder.rglob("*"):
        sync(file)
    sync(folder)


def _free(path: Path) -> int:
    """Bytes that may be written where a path is, or will be."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    return shutil.disk_usage(there).free


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _speaks_of_it(said: str) -> bool:
    return any(words in said for words in FULL)
