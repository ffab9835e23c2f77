"""A night's incidents, kept in its folder: child processes that died or hung, and rounds that ended early."""

import datetime
import json
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from conf.storage.durable import read_json, write_atomically

FILE, EARLY = "incidents.jsonl", "ended_early.json"
log = logging.getLogger("nightschool")


class EarlyEnd(NamedTuple):
    """How far a night got before it ended early, and why. `steps`: the number of recipe steps that are kept."""

    rounds: int
    why: str
    steps: int


def note(folder: Path, what: str, **extra: Any) -> None:
    """Record an incident in the night's folder, and log it. `extra`: log record fields for the progress display."""
    log.warning(what, extra=extra)
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    with (folder / FILE).open("a") as file:
        file.write(f"\n{json.dumps({'at': now, 'what': what})}\n")  # a killed process may leave a partial line
        file.flush()
        os.fsync(file.fileno())


def incidents(folder: Path) -> list[str]:
    """Return a night's incidents in order, each with its time of day. Incomplete lines are skipped."""
    lines = []
    with suppress(FileNotFoundError):
        for line in (folder / FILE).read_text().splitlines():
            with suppress(ValueError):
                incident = json.loads(line)
                lines.append(f"{incident['at'][11:16]} {incident['what']}")
    return lines


def end_early(folder: Path, rounds: int, why: str, steps: int) -> None:
    """End a night's training permanently. A night that is resumed goes on to the exam with these rounds and steps."""
    write_atomically(folder / EARLY, json.dumps({"rounds": rounds, "why": why, "steps": steps}))
    note(folder, why, rounds=rounds)


def ended_early(folder: Path) -> EarlyEnd | None:
    """Return how far a night got before it ended early, or None if it did not end early."""
    found = read_json(folder / EARLY)
    return found and EarlyEnd(**found)
