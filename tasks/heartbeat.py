"""Whether a child process still works at a call: its signs of life, and how long the call may take."""

import os
from pathlib import Path

POLL = 5.0  # seconds between two looks
QUIET = 600.0  # seconds: who uses less than a second of processor time in them is stuck, wherever that may be
ALIVE = 1.0 / 600  # share of them, in processor time; the idle threads of a stuck child use less
FIRST_LIMIT = 12 * 3600.0  # seconds of a call that has no history
LEAST_LIMIT, TIMES = 1800.0, 10  # of any other: so many times its longest so far, and never less than half an hour
TICKS = os.sysconf("SC_CLK_TCK")


class Heartbeat:
    """Looks at one call in a child process now and then.

    Only time in which it looks on is counted: where the night itself was stopped (Ctrl-Z, a machine asleep), no child
    is to blame for that. `quiet`, `limit`: seconds.
    """

    def __init__(self, process: int, quiet: float = QUIET, limit: float = FIRST_LIMIT) -> None:
        self.process, self.quiet, self.limit = process, quiet, limit
        self.poll = min(POLL, quiet / 4)
        self.seconds = self.still = 0.0  # of the call so far, and since the last sign of life
        self.used = processor_seconds(process)

    def complaint(self) -> str | None:
        """What is wrong with the child, `poll` seconds after the last look; None while it works."""
        self.seconds += self.poll
        self.still += self.poll
        used = processor_seconds(self.process)
        if abs(used - self.used) >= ALIVE * self.quiet:
            self.used, self.still = used, 0.0
        if self.still >= self.quiet:
            return f"was stuck: no processor time used for {self.still:.0f} s"
        if self.seconds >= self.limit:
            return f"was stuck: not through after {self.seconds:.0f} s"
        return None


def next_limit(longest: float | None) -> float:
    """How long a call may take, seconds, when the longest of its kind so far took `longest` (None: it is the first)."""
    return FIRST_LIMIT if longest is None else max(LEAST_LIMIT, TIMES * longest)


def processor_seconds(process: int) -> float:
    """Processor time that a process and its descendants have used so far, seconds; 0 of one that is gone."""
    folder = Path(f"/proc/{process}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = [child for file in folder.glob("task/*/children") for child in file.read_text().split()]
    except OSError:
        return 0.0
    own = sum(map(int, fields[11:15])) / TICKS  # user and system, its own and that of children it has waited for
    return own + sum(processor_seconds(int(child)) for child in children)
