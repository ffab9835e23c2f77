"""How the owner hears of a night: a command per alarm, and the report to a webhook. Failures never end the night."""

import json
import logging
import os
import signal
import ssl
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import httpx

from conf.storage.home import InputError
from tasks.monitoring.alarms import Alarm
from tasks.workers.worker import die_with_parent

COMMAND_LIMIT, WEBHOOK_LIMIT = 30.0, 20.0  # seconds
KEY = "morning.webhook_variable"

log = logging.getLogger("nightschool")


def run_alarm_command(
    command: Sequence[str], alarm: Alarm, night: str, output: Path, limit: float = COMMAND_LIMIT
) -> None:
    """Run the owner's command, an argument list without a shell, and wait for it for at most `limit` seconds.

    It reads the alarm as one line of JSON on its standard input and the sentence in NIGHTSCHOOL_ALARM; what it prints
    is appended to the file `output`. Its child processes end with it, and it ends with the night. Failures are logged,
    without the arguments: they may hold a key.
    """
    line, parent = json.dumps({"night": night, **asdict(alarm)}) + "\n", os.getpid()
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("ab") as stream:
            child = subprocess.Popen(
                command,
                env=os.environ | {"NIGHTSCHOOL_ALARM": alarm.sentence},
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                start_new_session=True,  # a process group that can be killed as a whole
                preexec_fn=lambda: die_with_parent(parent),
            )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.warning("alarms.command: %s cannot be run: %s", command[0], error)
        return
    try:
        child.communicate(line.encode(), timeout=limit)
        if child.returncode:
            log.warning("alarms.command: %s exited with code %d; see %s", command[0], child.returncode, output)
    except subprocess.TimeoutExpired:
        log.warning("alarms.command: %s took longer than %g s and was ended", command[0], limit)
    finally:
        with suppress(ProcessLookupError, PermissionError):  # all are gone, or the rest belongs to another user
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(5)


def webhook(variable: str) -> str:
    """Return the URL in this environment variable. Raises InputError, which does not repeat it, if there is none."""
    url = os.environ.get(variable, "")
    if not url.startswith(("http://", "https://")):
        state = "holds no http:// or https:// URL" if url else "is not set"
        raise InputError(f"{KEY}: {variable} {state}; set it to the webhook's URL, or {KEY} to null")
    return url


def post_report(variable: str, text: str, limit: float = WEBHOOK_LIMIT) -> None:
    """Post `{"text": …}`, which Slack, Mattermost, Rocket.Chat and Google Chat accept, within `limit` seconds.

    No redirect is followed. A failure is one line in the log, without the URL: it may be a key.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)  # below, it logs URLs
    try:
        url, trusted = webhook(variable), ssl.create_default_context()  # the system's certificates, not httpx's own
        answer = httpx.post(url, json={"text": text}, timeout=limit, verify=trusted)
        why = "" if answer.is_success else f"HTTP {answer.status_code}"
    except InputError as error:
        log.warning("%s", error)
        return
    except Exception as error:  # a bad URL, proxy, name or certificate: whatever the client raises
        why = type(error).__name__
    if why:
        log.warning("%s: the webhook of %s did not accept the morning report: %s", KEY, variable, why)
