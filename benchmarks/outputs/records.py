"""A benchmark's runs: a line of JSON each, appended as soon as the run ends, so that several sittings add up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.nights.ablations import commit, machine

Run = dict[str, Any]


def recorded(file: Path) -> list[Run]:
    """Return the runs so far, in the order in which they ended; an empty list if there is no file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_once(file: Path, asked: Run, run: Callable[[], Run]) -> Run:
    """Return the last recorded run of this kind. If there is none, do it and record it, with machine and commit."""
    known = [done for done in recorded(file) if asked.items() <= done.items()]
    if not known:
        known = [asked | {"machine": machine(), "commit": commit()} | run()]
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(json.dumps(known[-1]) + "\n")
    return known[-1]
