"""A benchmark's runs: a line of JSON each, appended as soon as the run ends, so that several sittings add up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = dict[str, Any]


def recorded(file: Path) -> list[Run]:
    """Return the runs so far, in the order in which they ended; an empty list if there is no file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_once(file: Path, asked: Run, run: Callable[[], Run]) -> None:
    """Do a run and record what was asked for and what came out, unless a run of the same kind is recorded."""
    if not any(asked.items() <= done.items() for done in recorded(file)):
        done = asked | run()
        with file.open("a") as lines:
            lines.write(json.dumps(done) + "\n")
