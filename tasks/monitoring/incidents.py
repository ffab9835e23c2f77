"""A night's incidents, recorded in the night's folder: for example, a child process died or training ended early."""

import datetime
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from conf.storage.durable import read_json, write_atomically
from conf.storage.log import log

FILE, EARLY = "incidents.jsonl", "ended_early.json"


class EarlyEnd(NamedTuple):
    """Why a night's training ended early, and how many `rounds` and recipe `steps` were finished and are kept.

    `died`: whether a child process died or hung. Otherwise, the night's hours were over.
    """

    rounds: int
    why: str
    steps: int
    died: bool = False


def note(folder: Path, what: str) -> None:
    """Log an incident and record it in the night's folder."""
    log.warning(what)
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    with (folder / FILE).open("a") as file:
        file.write(f"\n{json.dumps({'at': now, 'what': what})}\n")  # "\n" first: a kill may leave a partial line
        file.flush()
        os.fsync(file.fileno())


def incidents(folder: Path) -> list[str]:
    """Return a night's incidents in order, each prefixed with its time of day. Skip incomplete lines of the file."""
    lines = []
    with suppress(FileNotFoundError):
        for line in (folder / FILE).read_text().splitlines():
            with suppress(ValueError):
                incident = json.loads(line)
                lines.append(f"{incident['at'][11:16]} {incident['what']}")
    return lines


def end_early(folder: Path, rounds: int, why: str, steps: int, died: bool = False) -> None:
    """End a night's training for good. A resumed night keeps these rounds and steps and continues with the exam."""
    write_atomically(folder / EARLY, json.dumps(EarlyEnd(rounds, why, steps, died)._asdict()))
    note(folder, why)


def ended_early(folder: Path) -> EarlyEnd | None:
    """Return how a night's training ended early, or None if it did not end early."""
    found = read_json(folder / EARLY)
    return found and EarlyEnd(**found)
