"""Where a night is: a note in its folder, for whoever asks while it runs."""

import datetime
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

PROGRESS = "progress.json"


def note_progress(folder: Path, stage: str, done: bool) -> None:
    """Notes that a stage begins or is done, in one rename. A note that cannot be written costs no night."""
    draft = folder / f"{PROGRESS}.draft"
    note = {"stage": stage, "done": done, "at": now(), "pid": os.getpid()}
    with suppress(OSError):
        draft.write_text(json.dumps(note))
        draft.rename(folder / PROGRESS)


def read_progress(folder: Path, pid: int) -> dict[str, Any] | None:
    """What the process noted last (`stage`, `done`, `at`); None where it has not come so far."""
    try:
        note = json.loads((folder / PROGRESS).read_text())
    except (OSError, ValueError):
        return None
    return note if note["pid"] == pid else None


def now() -> str:
    """This moment, in the machine's time zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
