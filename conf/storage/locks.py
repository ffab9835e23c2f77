"""One night at a time on one home: a lock that dies with its holder."""

import datetime
import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from conf.storage.home import Home, InputError

NIGHT = "the night "  # how a night names itself to the lock, before its date
ASKING = 0.35  # seconds; who only asks holds the lock for an instant
PRUNING = 600.0  # seconds; who holds it and is no night has soon done
log = logging.getLogger("nightschool")
_held: set[Path] = set()


class NightRunningError(Exception):
    """Another night holds the home. Exit code 3."""


@contextmanager
def hold(root: Path, who: str) -> Iterator[None]:
    """Holds the home's lock; a second holder in the same process is let in.

    Any other gets NightRunningError where a night has it; for whoever else does it waits, some minutes at most. Makes
    the home first, for its owner alone; raises InputError where that cannot be.

    `flock` belongs to the open file: the kernel gives it back when the holder ends, however it ends.
    """
    file = root / "night.lock"
    if file in _held:
        yield
        return
    if Home(root).own():
        log.warning(f"{root}: others could enter this home; from now on its owner alone can (mode 0700)")
    with file.open("a+") as handle:
        _take(handle, root)
        since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        handle.truncate(0)
        handle.write(json.dumps({"who": who, "pid": os.getpid(), "since": since}))
        handle.flush()
        _held.add(file)
        try:
            yield
        finally:
            _held.discard(file)


def holds(root: Path) -> bool:
    """Whether this process holds the home already."""
    return root / "night.lock" in _held


def refuse_second(root: Path) -> None:
    """Raises NightRunningError where another process holds the home, and has not done soon. Writes nothing, not even
    the lock's file.
    """
    begun = time.monotonic()
    while not holds(root) and (other := holder(root)) is not None:
        if not _is_waited_for(other, begun, 0.0):
            raise NightRunningError(_told(other, root))
        time.sleep(0.05)


def holder(root: Path) -> dict[str, Any] | None:
    """What the holder of the home said of itself (`who`, `pid`, `since`); None where nobody holds it. Writes nothing.

    Empty where it holds it since this very moment.
    """
    try:
        handle = (root / "night.lock").open()
    except OSError:  # no night was here yet; a home that cannot be used is for the preflight to say
        return None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _note(handle)
    return None


def _take(handle: TextIO, root: Path) -> None:
    begun = time.monotonic()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            other = _note(handle)
        if not _is_waited_for(other, begun, ASKING):
            raise NightRunningError(_told(other, root))
        time.sleep(0.05)


def _is_waited_for(other: dict[str, Any], begun: float, patience: float) -> bool:
    """Whether a holder that was met at `begun` is waited for any longer: a night for `patience` seconds, others for
    minutes.
    """
    upkeep = not other.get("who", NIGHT).startswith(NIGHT)
    return time.monotonic() - begun < (PRUNING if upkeep else patience)


def _note(handle: TextIO) -> dict[str, Any]:
    handle.seek(0)
    try:
        return json.loads(handle.read())
    except json.JSONDecodeError:
        return {}


def _told(other: dict[str, Any], root: Path) -> str:
    if "who" in other and "pid" in other:
        return f"{root}: {other['who']} is running (process {other['pid']}); wait for it, or end it with Ctrl-C there"
    return f"{root}: another night is just starting; wait for it"


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


def server_of(root: Path) -> str | None:
    """Return the process of the server that has an engine on this home; None where none has. Writes nothing."""
    try:
        handle = (root / FILE).open()
    except OSError:  # nobody ever served
        return None
    with handle:
        return None if _is_free(handle) else _process(handle)


def _is_free(handle: TextIO) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _process(handle: TextIO) -> str:
    handle.seek(0)
    return handle.read() or "another"


@contextmanager
def alias_lock(home: Home) -> Iterator[None]:
    """Holds the aliases for the moment that it takes to look at them and to move them; others wait for that long.

    A night holds its home for hours, and its owner may want to roll back meanwhile: hence a lock of its own. It ends
    with its holder, however that ends. Raises InputError where there is no home.
    """
    if not home.root.is_dir():
        raise InputError(f"{home.root}: there is no home here; name yours with NIGHTSCHOOL_HOME")
    with (home.root / "aliases.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
