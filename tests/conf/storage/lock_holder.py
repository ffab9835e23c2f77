"""Another process that holds a home's lock."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = """
import sys, time
from pathlib import Path
from conf.storage.locks import hold

with hold(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(600)
"""


def command(root: Path, who: str = "the night 2026-11-20") -> list[str]:
    """Return the command of a process that holds the home under a name until it is killed."""
    return [sys.executable, "-c", SCRIPT, str(root), who]


@contextmanager
def holder(root: Path, who: str = "the night 2026-11-20") -> Iterator[subprocess.Popen[str]]:
    """Hold the home in another process."""
    with subprocess.Popen(command(root, who), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
