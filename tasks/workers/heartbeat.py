"""When a call in a child process counts as stuck."""

import os
from contextlib import suppress
from pathlib import Path

POLL = 5.0  # seconds between two checks
QUIET = 600.0  # seconds; a child that uses less than one second of CPU time in this period counts as stuck
ALIVE = 1.0 / 600  # CPU seconds per second of that period; the idle threads of a stuck child use less
FIRST_LIMIT = 12 * 3600.0  # seconds for a call that has no history
LEAST_LIMIT, TIMES = 1800.0, 10  # for other calls: ten times the longest so far, but at least half an hour
TICKS = os.sysconf("SC_CLK_TCK")


class Heartbeat:
    """Watches a call in a child, which is stuck after `quiet` seconds without CPU time or after `limit` seconds in all.

    Each poll counts as `poll` seconds, whatever the clock says, so that a child does not look stuck after a pause of
    the whole night (Ctrl-Z, a suspended machine).
    """

    def __init__(self, process: int, quiet: float = QUIET, limit: float = FIRST_LIMIT) -> None:
        self.process, self.quiet, self.limit = process, quiet, limit
        self.poll = min(POLL, quiet / 4)
        self.seconds = self.still = 0.0  # since the call began, and since the last sign of life
        self.used = processor_seconds(process)

    def complaint(self) -> str | None:
        """Return what is wrong with the child, or None while it works. Call this every `poll` seconds."""
        self.seconds += self.poll
        self.still += self.poll
        used = processor_seconds(self.process)
        if abs(used - self.used) >= ALIVE * self.quiet:
            self.used, self.still = used, 0.0
        if self.still >= self.quiet:
            return f"was stuck: no processor time used for {self.still:.0f} s"
        if self.seconds >= self.limit:
            return f"was stuck: not finished after {self.seconds:.0f} s"
        return None


def next_limit(longest: float | None) -> float:
    """Return a call's time limit in seconds. `longest`: seconds of the longest earlier call of its kind, or None."""
    return FIRST_LIMIT if longest is None else max(LEAST_LIMIT, TIMES * longest)


def processor_seconds(process: int) -> float:
    """Return the CPU time of a process and its descendants in seconds, or 0 if the process no longer exists."""
    used = 0.0
    for each in (process, *descendants(process)):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15])) / TICKS  # user and system time, also of children it has waited for
    return used


def descendants(process: int) -> list[int]:
    """Return the process IDs of a process's children, their children, and so on."""
    found = list[int]()
    for file in Path(f"/proc/{process}").glob("task/*/children"):
        with suppress(OSError):  # the thread has ended
            for child in map(int, file.read_text().split()):
                found += [child, *descendants(child)]
    return found
