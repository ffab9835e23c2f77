"""Forcing to the disk what must outlive a power cut."""

import os
from pathlib import Path


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
