"""One night at a time on one home: a lock that dies with its holder."""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conf.home import Home

log = logging.getLogger("nightschool")
_held: set[Path] = set()


class NightRunningError(Exception):
    """Another night holds the home. Exit code 3."""


@contextmanager
def hold(root: Path, who: str) -> Iterator[None]:
    """Holds the home's lock; a second holder in the same process is let in, any other gets NightRunningError.

    Makes the home first, for its owner alone; raises InputError where that cannot be.

    `flock` belongs to the open file: the kernel gives it back when the holder ends, however it ends.
    """
    file = root / "night.lock"
    if file in _held:
        yield
        return
    if Home(root).own():
        log.warning(f"{root}: others could enter this home; from now on its owner alone can (mode 0700)")
    with file.open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            raise NightRunningError(_holder(handle.read(), root)) from None
        handle.truncate(0)
        handle.write(json.dumps({"who": who, "pid": os.getpid()}))
        handle.flush()
        _held.add(file)
        try:
            yield
        finally:
            _held.discard(file)


def refuse_second(root: Path) -> None:
    """Raises NightRunningError where another process holds the home. Writes nothing, not even the lock's file."""
    file = root / "night.lock"
    if file in _held:
        return
    try:
        handle = file.open()
    except OSError:  # no night was here yet; a home that cannot be used is for the preflight to say
        return
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NightRunningError(_holder(handle.read(), root)) from None


def _holder(note: str, root: Path) -> str:
    try:
        known = json.loads(note)
        return f"{root}: {known['who']} is running (process {known['pid']}); wait for it, or end it with Ctrl-C there"
    except (json.JSONDecodeError, KeyError):
        return f"{root}: another night is just starting; wait for it"
