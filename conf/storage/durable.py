"""Durable files: a crash never leaves a file half-written, and a full disk raises a clear one-line error."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from conf.storage.home import NightError

FULL = ("No space left on device", "disk is full", "Disk quota exceeded")  # the messages of the system and of SQLite


class DiskFullError(NightError):
    """The disk has no room for the file being written. Files written earlier are intact."""


def sync(path: Path) -> None:
    """Force one file's content, or one folder's entries, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Force a folder to disk, including all its files and subfolders."""
    for file in folder.rglob("*"):
        sync(file)
    sync(folder)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder and its missing parents so that they survive a power cut."""
    if not folder.parent.is_dir():
        make_folder(folder.parent, mode)
    folder.mkdir(mode, exist_ok=True)
    sync(folder.parent)


def write_atomically(file: Path, text: str) -> None:
    """Write a text file so that readers see either all of the old or all of the new content, even after a power cut.

    Raises DiskFullError if the disk has no room.
    """
    draft = file.with_name(f"{file.name}.draft")
    with room_for(draft, len(text.encode())), draft.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(file)
    sync(file.parent)


def read_json(file: Path, missing: Any = None) -> Any:
    """Return the content of a JSON file, or `missing` if the file does not exist."""
    return json.loads(file.read_text()) if file.exists() else missing


@contextmanager
def room_for(path: Path, needed: int = 0) -> Iterator[None]:
    """Guard a block that writes a file or folder of about `needed` bytes (0: unknown).

    Raises DiskFullError if there is too little room. If the disk fills up during the block, removes `path` first.
    """
    if needed > free_bytes(path):
        raise disk_full_error(path, needed)
    try:
        yield
    except Exception as error:
        if not disk_is_full(error):
            raise
        written = size_of(path)
        shutil.rmtree(path, ignore_errors=True)  # ignores a file
        with suppress(OSError):
            path.unlink()
        if isinstance(error, DiskFullError):  # from a nested guard, which knows the needed size better
            raise
        raise disk_full_error(path, needed, written) from error


def disk_is_full(error: BaseException) -> bool:
    """Return whether an error means that the disk is full, judged by its errno or a library's message."""
    number = getattr(error, "errno", None)
    full = number in (errno.ENOSPC, errno.EDQUOT) or any(words in str(error) for words in FULL)
    return full or isinstance(error, DiskFullError)


def disk_full_error(path: Path, needed: int = 0, written: int = 0) -> DiskFullError:
    """Return an error that states the path, the MB needed (if unknown, more than `written`) and the MB free."""
    room = f"about {needed / 1e6:.1f} MB are needed" if needed else f"more than {written / 1e6:.1f} MB are needed"
    return DiskFullError(
        f"{path}: the disk is full: {room}, and {free_bytes(path) / 1e6:.1f} MB are free; "
        "make room, and run the same command again: it resumes"
    )


def size_of(path: Path) -> int:
    """Return the total size in bytes of a file or of a folder's files. What is missing or vanishes counts as 0."""
    size, files = 0, [path]
    if path.is_dir():
        files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    for file in files:
        with suppress(FileNotFoundError):
            size += file.stat().st_size if file.is_file() else 0
    return size


def free_bytes(path: Path) -> int:
    """Return the number of free bytes on the disk that holds a path, even if the path does not exist yet."""
    return shutil.disk_usage(existing_folder(path)).free


def existing_folder(path: Path) -> Path:
    """Return the path if it exists, else its nearest existing parent folder."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())
