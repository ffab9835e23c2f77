"""A power cut: what was forced to the disk, and what goes when the current does.

A file's content is safe once it was synced and not changed since; a name (of a folder made, of a file or folder moved)
once its folder was synced afterwards. SQLite and the logs are left as they are: the first syncs for itself, out of
sight of this, and nothing depends on the others.
"""

import os
import shutil
import stat
from pathlib import Path
from typing import Any

UNSEEN = ("prefect", "mlartifacts", "mlflow.db", "mlflow.db-journal", "journal", "night.lock")
_log: Path | None = None


def watch(folder: Path) -> None:
    """Notes from now on, in a file of this folder, what this process syncs, and which folders it makes."""
    global _log
    _log = folder / "disk.log"
    synced, made = os.fsync, os.mkdir

    def fsync(handle: Any) -> None:
        synced(handle)
        found = os.fstat(handle)
        _note("D" if stat.S_ISDIR(found.st_mode) else "F", found.st_ino, found.st_mtime_ns)

    def mkdir(path: Any, *arguments: Any, **options: Any) -> None:
        made(path, *arguments, **options)
        note_entry(Path(path))

    os.fsync, os.mkdir = fsync, mkdir


def note_entry(path: Path) -> None:
    """A name is new in its folder."""
    _note("E", path.absolute().parent.stat().st_ino, path.absolute())


def cut_power(home: Path, folder: Path) -> list[str]:
    """Takes from a home whose processes are gone what was not safe; returns what that was."""
    files, folders, entries = _read(folder / "disk.log")
    lost = []
    for path in sorted(home.rglob("*")):
        if path.relative_to(home).parts[0] in UNSEEN or "logs" in path.parts or not path.exists():
            continue
        since, parent = entries.get(str(path), (-1, 0))
        if folders.get(parent, -1) < since:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif path.is_file() and files.get(path.stat().st_ino) != path.stat().st_mtime_ns:
            os.truncate(path, path.stat().st_size // 2)
        else:
            continue
        lost.append(str(path.relative_to(home)))
    return lost


def _note(kind: str, number: int, what: object) -> None:
    if _log is not None:
        with _log.open("a") as log:
            log.write(f"{kind} {number} {what}\n")


def _read(log: Path) -> tuple[dict[int, int], dict[int, int], dict[str, tuple[int, int]]]:
    """By inode: a file's time of change when it was synced, and a folder's last sync; by path: when its name was new,
    and in which folder. Times are lines of the log.
    """
    files: dict[int, int] = {}
    folders: dict[int, int] = {}
    entries: dict[str, tuple[int, int]] = {}
    for line, (kind, number, what) in enumerate(text.split(" ", 2) for text in log.read_text().splitlines()):
        if kind == "F":
            files[int(number)] = int(what)
        elif kind == "D":
            folders[int(number)] = line
        else:
            entries[what] = (line, int(number))
    return files, folders, entries
