"""The pace of a reader in this machine's own measure: a limit in seconds would be another one on every machine."""

import time
from collections.abc import Callable

LONGEST = 20_000  # characters
LINEAR = 400.0  # walks: whatever reads a text a few times stays far below, what is quadratic takes thousands
TRIES = 7
STRIDE = 5  # walks that are timed together: one alone takes a tenth of a millisecond
_TEXT = "x" * LONGEST


def walks(read: Callable[[], object]) -> float:
    """The processor time of a call, in walks: what a plain loop over `LONGEST` characters takes at the same moment.

    The least of several tries: a busy machine is no fault of the reader. The first that is linear is enough.
    """
    least = float("inf")
    for _ in range(TRIES):
        least = min(least, STRIDE * _seconds(read) / _seconds(_walks))
        if least < LINEAR:
            break
    return least


def _walks() -> None:
    for _ in range(STRIDE):
        for _ in _TEXT:
            pass


def _seconds(call: Callable[[], object]) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started
