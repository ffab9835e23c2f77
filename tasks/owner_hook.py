"""The owner's command: run once an alarm, and never a reason for the night to end."""

import json
import logging
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from tasks.alarms import Alarm
from tasks.workers import die_with_parent

LIMIT = 30.0  # seconds

log = logging.getLogger("nightschool")


def tell_owner(command: Sequence[str], alarm: Alarm, night: str, output: Path, limit: float = LIMIT) -> None:
    """Runs the command, an argument list without a shell, and waits for it for at most `limit` seconds.

    On its input it finds the alarm as one line of JSON, in NIGHTSCHOOL_ALARM the sentence; what it prints goes into the
    file `output`. The processes that it starts end with it, and it ends with the night. Whatever goes wrong is logged;
    its arguments are not, for they may hold a key.
    """
    line = json.dumps({"night": night, **asdict(alarm)}) + "\n"
    try:
        child = _start(command, alarm.sentence, output)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.warning("alarms.command: %s cannot be run: %s", command[0], error)
        return
    try:
        child.communicate(line.encode(), timeout=limit)
        if child.returncode:
            log.warning("alarms.command: %s ended with code %d; see %s", command[0], child.returncode, output)
    except subprocess.TimeoutExpired:
        log.warning("alarms.command: %s was not through after %g s and was ended", command[0], limit)
    finally:
        _end(child)


def _start(command: Sequence[str], sentence: str, output: Path) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as stream:
        return subprocess.Popen(
            command,
            env=os.environ | {"NIGHTSCHOOL_ALARM": sentence},
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=stream,
            start_new_session=True,  # a group of its own, which can be ended as a whole
            preexec_fn=lambda: die_with_parent(parent),
        )


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all gone; or what is left is another user's
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        child.wait(5)
