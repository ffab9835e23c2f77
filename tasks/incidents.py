"""What befell a night on its way: a child process that died or hung, rounds that ended early. Kept in its folder."""

import datetime
import json
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from conf.storage.durable import write_atomically

FILE, EARLY = "incidents.jsonl", "ended_early.json"
log = logging.getLogger("nightschool")


class EarlyEnd(NamedTuple):
    """The rounds that count of a night that did not go through all of them, why, and the steps of `stages` begun."""

    rounds: int
    why: str
    steps: int


def note(folder: Path, what: str, **extra: Any) -> None:
    """Keeps an incident of the night in this folder, and logs it (with `extra`, for whoever shows progress)."""
    log.warning(what, extra=extra)
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    with (folder / FILE).open("a") as file:
        file.write(f"\n{json.dumps({'at': now, 'what': what})}\n")  # the line before may have been cut off
        file.flush()
        os.fsync(file.fileno())


def incidents(folder: Path) -> list[str]:
    """A night's incidents, each with its time of day, in order; a line that was cut off is left out."""
    found = []
    with suppress(FileNotFoundError):
        for line in (folder / FILE).read_text().splitlines():
            with suppress(ValueError, KeyError, TypeError):
                incident = json.loads(line)
                found.append(f"{incident['at'][11:16]} {incident['what']}")
    return found


def end_early(folder: Path, rounds: int, why: str, steps: int) -> None:
    """Ends a night's learning for good: started again, it goes on to the exam with the same rounds and steps, to the
    same outcome.
    """
    write_atomically(folder / EARLY, json.dumps({"rounds": rounds, "why": why, "steps": steps}))
    note(folder, why, rounds=rounds)


def ended_early(folder: Path) -> EarlyEnd | None:
    """Whether, and why, a night's rounds ended before the configured number."""
    try:
        return EarlyEnd(**json.loads((folder / EARLY).read_text()))
    except FileNotFoundError:
        return None
