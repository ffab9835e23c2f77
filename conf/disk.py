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
