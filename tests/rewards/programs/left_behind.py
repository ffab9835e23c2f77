"""Find what a run can leave on the machine: processes, mounts, files, descriptors."""

import ctypes
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

MARK = "nightschool-hostile"  # in the name of every file that the corpus tries to make
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
        "descriptors": sorted(os.listdir("/proc/self/fd")),
    }


def processes() -> Iterator[tuple[int, str]]:
    """Yield pid and name of every descendant of this process that has not ended."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            if process.status() != psutil.STATUS_ZOMBIE:  # which has ended
                yield process.pid, process.name()


def memory_mb() -> float:
    """Return the resident memory of all descendants; shared pages count once for each."""
    size = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            size += process.memory_info().rss
    return size / (1 << 20)
