"""The locks of a home. They allow one night, one server and one change of the aliases at a time.

Each lock is a `flock` on a file in the home. It belongs to the open file, so the kernel releases it when the process
that holds it ends, for whatever reason.
"""

import datetime
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from conf.storage.home import Home, InputError, require_writable
from conf.storage.log import log

NIGHT = "the night "  # how a night names itself in its lock, before its date
QUERY_SECONDS = 0.35  # how long to retry: a process that only checks who holds a lock takes it for an instant
UPKEEP_SECONDS = 600.0  # how long to wait for a prune, which finishes soon
ALIAS_SECONDS = 120.0  # how long to wait for another promotion or rollback
SERVER_SECONDS = 120.0  # how long to wait for a server to finish its answers (30 seconds) and stop its engine
SERVER_LOCK = "serve.lock"
_held: set[Path] = set()


class NightRunningError(Exception):
    """Another night holds the home. The exit code is 3."""


@contextmanager
def hold(root: Path, who: str) -> Iterator[None]:
    """Hold the home's lock while the block runs. A process that already holds the lock may enter again.

    Creates the home first, accessible only to its owner. Waits up to 10 minutes for a prune, and 0.35 s for others.
    Raises NightRunningError if the lock stays taken, or InputError if the home cannot be made private.
    """
    file = root / "night.lock"
    if file in _held:
        yield
        return
    if Home(root).make_private():
        log.warning(f"{root}: others could enter this home; from now on only its owner can (mode 0700)")
    require_writable(root)
    with file.open("a+") as handle:
        _wait_for(lambda: None if _lock(handle, fcntl.LOCK_EX) else holder(root) or {}, root, QUERY_SECONDS)
        since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        _write_note(handle, json.dumps({"who": who, "pid": os.getpid(), "since": since}))
        _held.add(file)
        try:
            yield
        finally:
            _held.discard(file)


def holds(root: Path) -> bool:
    """Return whether this process holds the home's lock."""
    return root / "night.lock" in _held


def refuse_if_night_running(root: Path) -> None:
    """Raise NightRunningError if a night in another process holds the home. Waits for other holders. Writes nothing."""
    if not holds(root):
        _wait_for(lambda: holder(root), root, 0.0)


def holder(root: Path) -> dict[str, Any] | None:
    """Return the holder's note in the home's lock file (`who`, `pid`, `since`), or None if the lock is free.

    The note is empty if the holder has only just taken the lock. Writes nothing, and does not create the file.
    """
    note = _note(root / "night.lock")
    return None if note is None else json.loads(note or "{}")


def running_night(root: Path) -> str | None:
    """Return the name of the running night, e.g. `the night 2026-11-20`, or None if no night is running."""
    held = holder(root)
    who = None if held is None else str(held.get("who", NIGHT.strip()))  # no name yet: it may be a night
    return who if who and who.startswith(NIGHT.strip()) else None


def take_server_lock(root: Path, process: int) -> TextIO:
    """Take the lock for a server's engine, and return the open file. Processes that inherit the file also hold it.

    Raises InputError if another server has an engine on this home.
    """
    require_writable(root)
    handle = (root / SERVER_LOCK).open("a+")
    end = time.monotonic() + QUERY_SECONDS
    while not _lock(handle, fcntl.LOCK_EX):
        if time.monotonic() >= end:
            handle.close()
            raise _already_served(root, server_of(root) or "another")
        time.sleep(0.05)
    _write_note(handle, str(process))
    return handle


def wait_for_server(root: Path, limit: float = SERVER_SECONDS) -> None:
    """Wait until no server has an engine on this home. A server stops its engine when a night takes the home.

    Raises InputError if a server still has an engine after `limit` seconds.
    """
    end = time.monotonic() + limit
    if server_of(root) is not None:
        log.info("waiting for nightschool serve or teach to make room for the night")
    while (process := server_of(root)) is not None:
        if time.monotonic() >= end:
            raise InputError(
                f"{root}: process {process} (nightschool serve or teach) does not make room for the night; "
                "end it with Ctrl-C in its terminal, and run the night again"
            )
        time.sleep(0.2)


def refuse_second_server(root: Path) -> None:
    """Raise InputError if another server has an engine on this home."""
    if (other := server_of(root)) is not None:
        raise _already_served(root, other)


def server_of(root: Path) -> str | None:
    """Return the process ID (or `another`) of the server that has an engine on this home, or None. Writes nothing."""
    note = _note(root / SERVER_LOCK)
    return None if note is None else note or "another"


class AliasesHeldError(InputError):
    """Another process keeps the lock on the registry's aliases."""


@contextmanager
def alias_lock(home: Home) -> Iterator[None]:
    """Hold the lock on the registry's aliases while they are read and moved. Other processes wait.

    It is separate from the home's lock, which a night holds for hours: the owner may want to roll back meanwhile.
    Raises InputError if there is no home, and AliasesHeldError if another process holds the lock for ALIAS_SECONDS.
    """
    if not home.root.is_dir():
        raise InputError(f"{home.root}: there is no home here; name yours with NIGHTSCHOOL_HOME")
    with (home.root / "aliases.lock").open("a") as file:
        begun = time.monotonic()
        while not _lock(file, fcntl.LOCK_EX):
            if time.monotonic() - begun >= ALIAS_SECONDS:
                raise AliasesHeldError(f"{home.root}: another `nightschool promote` or `rollback` does not end; end it")
            time.sleep(0.05)
        yield


def _wait_for(other_holder: Callable[[], dict[str, Any] | None], root: Path, patience: float) -> None:
    """Wait until nobody holds the lock. Raises NightRunningError after UPKEEP_SECONDS (for a prune) or `patience`."""
    begun = time.monotonic()
    while (other := other_holder()) is not None:
        is_brief = "prune" in other.get("who", "")
        if time.monotonic() - begun >= (UPKEEP_SECONDS if is_brief else patience):
            what = "a night is just starting; try again in a moment"
            if "who" in other and "pid" in other:
                who = f"{other['who']} is running (process {other['pid']})"
                what = f"{who}; wait for it, or end it with Ctrl-C in its terminal"
            raise NightRunningError(f"{root}: {what}")
        time.sleep(0.05)


def _already_served(root: Path, other: str) -> InputError:
    return InputError(f"{root}: process {other} serves this home already; end it with Ctrl-C in its terminal")


def _lock(handle: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_note(handle: TextIO, note: str) -> None:
    handle.truncate(0)
    handle.write(note)
    handle.flush()


def _note(file: Path) -> str | None:
    """Return what the holder of a lock wrote into its file, or None if the lock is free. Writes nothing."""
    try:
        handle = file.open()
    except OSError:  # never held; the preflight reports an unusable home
        return None
    with handle:
        return None if _lock(handle, fcntl.LOCK_SH) else handle.read()
