"""Functions that tests of the workers run in a child process."""

import os
import signal
import subprocess
import sys
import time
from typing import NoReturn

calls = 0


def count() -> tuple[int, int]:
    """Return the child's process id, and how often it was called."""
    global calls
    calls += 1
    return os.getpid(), calls


def fail(what: str) -> NoReturn:
    raise LookupError(what)


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still here")


def say(text: str) -> str | None:
    """Print on both streams; return the variable that the test's worker sets."""
    print(f"out {text}", flush=True)
    print(f"err {text}", file=sys.stderr, flush=True)
    return os.environ.get("NIGHTSCHOOL_TEST")


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def spin(seconds: float) -> float:
    """Use processor time for so many seconds."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        pass
    return seconds


def start_another() -> int:
    """Start a process that sleeps for ten minutes, and return its ID."""
    return subprocess.Popen(["sleep", "600"]).pid
