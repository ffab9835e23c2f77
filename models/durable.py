"""Writes that a crash cannot halve."""

import os
from pathlib import Path


def write_atomically(file: Path, text: str) -> None:
    """Writes a text so that a reader sees the old or the new, never a half, also after a power cut."""
    draft = file.with_name(f"{file.name}.draft")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(file)
    sync(file.parent)


def sync_folder(folder: Path) -> None:
    """Forces the folder's files and its own entries to the disk."""
    for file in folder.rglob("*"):
        sync(file)
    sync(folder)


def sync(path: Path) -> None:
    """Forces one file's content, or one folder's entries, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
