"""A power cut: lose what was not forced to the disk.

A file's content is safe once it was synced and not changed since; a new name (of a folder, or of a moved file) once its
folder was synced afterwards. SQLite and the logs are left alone: SQLite syncs unseen from here, and nothing depends on
the logs.
"""

import os
import shutil
import stat
from pathlib import Path
from typing import Any

UNSEEN = ("prefect", "mlartifacts", "mlflow.db", "mlflow.db-journal", "journal", "night.lock")
_log: Path | None = None


def watch(folder: Path) -> None:
    """Log from now on what this process syncs and which folders it makes, in a file of this folder."""
    global _log
    _log = folder / "disk.log"
    sync_file, make_folder = os.fsync, os.mkdir

    def fsync(handle: Any) -> None:
        sync_file(handle)
        status = os.fstat(handle)
        _note("D" if stat.S_ISDIR(status.st_mode) else "F", status.st_ino, status.st_mtime_ns)

    def mkdir(path: Any, *arguments: Any, **options: Any) -> None:
        make_folder(path, *arguments, **options)
        note_entry(Path(path))

    os.fsync, os.mkdir = fsync, mkdir


def note_entry(path: Path) -> None:
    """Log that a name is new in its folder."""
    _note("E", path.absolute().parent.stat().st_ino, path.absolute())


def cut_power(home: Path, folder: Path) -> list[str]:
    """Remove what was not safe from a home without processes. Returns the paths."""
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
    """Return a file's mtime when it was synced and a folder's last sync by inode; and when a name was new, with its
    folder, by path. Times are lines of the log.
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
