"""Find what a run can leave on the machine: processes, mounts, shared memory, files, descriptors."""

import ctypes
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MARK = "nightschool-hostile"  # in the name of every file that the corpus tries to make
KEY = "4e5348"  # in the keys of its shared memory, as /proc/sysvipc shows them in decimal: see `_shared_memory`
FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/dev", "/", "~", ".")
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make orphans children of this process from now on, so that `processes` finds them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def left_behind(before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what a run must not change. Processes that were not there `before` may take five seconds to end."""
    until = time.monotonic() + 5
    while before and dict(processes()).keys() - before["processes"].keys() and time.monotonic() < until:
        time.sleep(0.02)
    return {
        "processes": dict(processes()),
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "files": sorted(str(path) for folder in FOLDERS for path in Path(folder).expanduser().glob(f"*{MARK}*")),
        "cores": sorted(str(path) for path in Path().glob("core*")),
        "temporary": sorted(os.listdir(tempfile.gettempdir())),
        "shared memory": _shared_memory(),
        "descriptors": sorted(os.listdir("/proc/self/fd")),
    }


def processes() -> Iterator[tuple[int, str]]:
    """Return pid and name of every descendant of this process that has not ended."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            number, _, rest = (folder / "stat").read_text().partition(" (")
        except OSError:  # it has just ended
            continue
        name, _, fields = rest.rpartition(") ")
        state, parent = fields.split()[:2]
        if state != "Z":  # a zombie has ended
            parents[int(number)] = int(parent), name
    family = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family and pid not in family}:
        family |= more
    return ((pid, parents[pid][1]) for pid in sorted(family - {os.getpid()}))


def memory_mb() -> float:
    """Return the resident memory of all descendants; shared pages count once for each."""
    pages = 0
    for pid, _ in processes():
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _shared_memory() -> list[str]:
    """Return the System V blocks with a key of the corpus (0x4e534831 and the like)."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return [line for line in lines if f"{int(line.split()[0]) & 0xFFFFFFFF:x}".startswith(KEY)]
