"""Which processes run."""

import time
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def with_setting(setting: str) -> list[str]:
    """Return the commands of the processes that have this setting (NAME=value) in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{setting}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def gone_within(seconds: float, *pids: int) -> bool:
    """Wait until none of the processes runs, at most so many seconds; return whether that is so."""
    limit = time.monotonic() + seconds
    while any(map(is_running, pids)) and time.monotonic() < limit:
        time.sleep(0.02)
    return not any(map(is_running, pids))
