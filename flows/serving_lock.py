"""Who has the machine's memory: the engine that serves by day, or a night.

The server holds `serve.lock` for as long as it has an engine, and looks at the night's lock before it starts one. A
night, which holds its own lock by then, waits for this one. So neither can miss the other, and no file can make a
dead server look alive: `flock` goes with the processes that hold it, the engine's own among them.
"""

import fcntl
import logging
import time
from pathlib import Path
from typing import TextIO

from conf.home import InputError
from flows.lock import NIGHT, holder

FILE = "serve.lock"
LIMIT = 120.0  # seconds; answers under way have 30 of them, and an engine takes some to end
log = logging.getLogger("nightschool")


def night_of(root: Path) -> str | None:
    """Which night holds the home, as `the night 2026-11-20`; None where none does."""
    held = holder(root)
    who = None if held is None else str(held.get("who", NIGHT.strip()))  # of this very moment: it says so soon
    return who if who and who.startswith(NIGHT.strip()) else None


def take(root: Path, process: int) -> TextIO:
    """The lock, for a server's engine: whatever inherits the open file holds it too.

    Raises InputError where another server has an engine on this home.
    """
    handle = (root / FILE).open("a+")
    for patience in (0.05, 0.1, 0.2, 0.0):  # seconds; a night that only asks holds it for an instant too
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(patience)
        else:
            handle.truncate(0)
            handle.write(str(process))
            handle.flush()
            return handle
    other = _process(handle)
    handle.close()
    raise InputError(f"{root}: process {other} serves this home already; end it with Ctrl-C there")


def wait_until_free(root: Path, limit: float = LIMIT) -> None:
    """Returns when no server has an engine on this home: it lets go by itself while a night holds the home.

    Raises InputError where it does not within `limit` seconds.
    """
    try:
        handle = (root / FILE).open()
    except OSError:  # nobody ever served
        return
    end = time.monotonic() + limit
    with handle:
        if not _is_free(handle):
            log.info("nightschool serve is waited for: it makes room for the night")
        while not _is_free(handle):
            if time.monotonic() >= end:
                raise InputError(
                    f"{root}: nightschool serve (process {_process(handle)}) does not make room for the night; "
                    "end it with Ctrl-C there, and begin the night again"
                )
            time.sleep(0.2)


def _is_free(handle: TextIO) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _process(handle: TextIO) -> str:
    handle.seek(0)
    return handle.read() or "another"
