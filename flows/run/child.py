"""Child programs of a command, each with its own session and log. They end when the command ends."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tasks.workers.worker import die_with_parent

Child = subprocess.Popen[bytes]


def start_child(
    command: Sequence[str],
    environment: dict[str, str],
    log: Path,
    orphaned: signal.Signals = signal.SIGKILL,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start a program whose output goes to a log file. Ctrl-C does not reach the program.

    `orphaned`: the signal sent to the program if the calling thread ends. `cwd`, `pass_fds`: as for `subprocess.Popen`.
    """
    parent = os.getpid()
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent, orphaned),
            cwd=cwd,
            pass_fds=pass_fds,
        )


def end_child(child: Child, grace: float = 0.0) -> None:
    """Kill a program and its descendants. If `grace` is not 0, first send it SIGTERM and wait up to `grace` seconds."""
    if grace:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
