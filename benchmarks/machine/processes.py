"""The processes of a night that this process started."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

OTHER = "other"
ROLES = {"engine.log": "engine", "trainer.log": "trainer", "server.log": "Prefect server"}  # by their output file


def processes() -> Iterator[tuple[str, psutil.Process]]:
    """Yield all descendants of this process with their roles: OTHER for those that are just starting or ending."""
    for process in psutil.Process().children(recursive=True):
        try:
            output = Path(os.readlink(f"/proc/{process.pid}/fd/1")).name
            command = "benchmarks.nights.timed" in process.cmdline()
        except (psutil.Error, OSError):  # it has ended
            continue
        yield "night" if command else ROLES.get(output, OTHER), process
