"""Measurements in child processes, which end when the benchmark ends."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from models.engine.environment import engine_environment
from tasks.workers.worker import Worker, die_with_parent


def json_of(module: str, *arguments: str, environment: Mapping[str, str]) -> Any:
    """Run a module in a child process, and return the JSON that it prints as its last line.

    `environment` adds to this process's own. The child is killed when this process ends, however it ends.
    Raises CalledProcessError if the child fails.
    """
    parent = os.getpid()
    finished = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=lambda: die_with_parent(parent),
    )
    return json.loads(finished.stdout.splitlines()[-1])


def nightschool(home: Path, *arguments: str, **environment: str) -> Any:
    """Run the `nightschool` command with `--json` on a home. Returns what it prints; otherwise like `json_of`."""
    environment = {"NIGHTSCHOOL_HOME": str(home.resolve()), **environment}
    return json_of("flows", *arguments, "--json", environment=environment)


@contextmanager
def engine() -> Iterator[Worker]:
    """Start a process for an engine, with a temporary log for its output, and yield its worker."""
    with (
        tempfile.NamedTemporaryFile() as log,
        closing(Worker("engine", engine_environment(), Path(log.name))) as worker,
    ):
        yield worker
