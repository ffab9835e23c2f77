"""A note in the night's folder on where it is, for `nightschool status`."""

import datetime
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

PROGRESS = "progress.json"


def note_progress(folder: Path, stage: str, done: bool) -> None:
    """Note, in one rename, that a stage begins or is done. A failure to write is ignored."""
    draft = folder / f"{PROGRESS}.draft"
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    note = {"stage": stage, "done": done, "at": now, "pid": os.getpid()}
    with suppress(OSError):
        draft.write_text(json.dumps(note))
        draft.rename(folder / PROGRESS)


def read_progress(folder: Path, pid: int) -> dict[str, Any] | None:
    """Return what the process noted last (`stage`, `done`, `at`); None if it has noted nothing yet."""
    try:
        note = json.loads((folder / PROGRESS).read_text())
    except (OSError, ValueError):
        return None
    return note if note["pid"] == pid else None
