"""What the tests of the workers have a child process do."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

calls = 0


def count() -> tuple[int, int]:
    """The child's process id, and how often it was asked."""
    global calls
    calls += 1
    return os.getpid(), calls


def fail(what: str) -> NoReturn:
    raise LookupError(what)


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still here")


def say(text: str) -> str | None:
    """Prints on both streams; returns the variable that the test's worker sets."""
    print(f"out {text}", flush=True)
    print(f"err {text}", file=sys.stderr, flush=True)
    return os.environ.get("NIGHTSCHOOL_TEST")


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def spin(seconds: float) -> float:
    """Works for so long."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        pass
    return seconds


def hang_once(note: Path) -> str:
    """Hangs the first time that it is asked, and answers afterwards."""
    if not note.exists():
        note.touch()
        time.sleep(600)
    return "an answer"
