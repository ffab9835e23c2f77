"""The owner's command: run once an alarm, and never a reason for the night to end."""

import json
import logging
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from conf.storage.home import InputError
from tasks.monitoring.alarms import Alarm
from tasks.workers import die_with_parent

COMMAND_LIMIT = 30.0  # seconds

log = logging.getLogger("nightschool")


def tell_owner(command: Sequence[str], alarm: Alarm, night: str, output: Path, limit: float = COMMAND_LIMIT) -> None:
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


WEBHOOK_LIMIT = 20.0  # seconds
PLACE = "morning.webhook_variable"

log = logging.getLogger("nightschool")


class _Stays(HTTPRedirectHandler):
    """Follows no redirect: the text would be lost, for a POST that is sent elsewhere becomes a GET."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def webhook(variable: str) -> str:
    """The URL that the environment variable holds. Raises InputError, which does not repeat it, where it is none."""
    url = os.environ.get(variable, "")
    if not url.startswith(("http://", "https://")):
        state = "holds no http:// or https:// URL" if url else "is not set"
        raise InputError(f"{PLACE}: {variable} {state}; set it to the webhook's URL, or {PLACE} to null")
    return url


def tell_morning(variable: str, text: str, limit: float = WEBHOOK_LIMIT) -> None:
    """Posts `{"text": …}`, as Slack, Mattermost, Rocket.Chat and Google Chat take it; waits `limit` seconds at most.

    What goes wrong is one line in the log, without the URL: it may be a key.
    """
    try:
        body = json.dumps({"text": text}).encode()
        request = Request(webhook(variable), body, {"Content-Type": "application/json; charset=utf-8"}, method="POST")
        with build_opener(_Stays).open(request, timeout=limit):
            return
    except InputError as error:
        log.warning("%s", error)
        return
    except HTTPError as error:
        why = f"HTTP {error.code}"
    except URLError as error:
        why = str(error.reason)
    except (OSError, HTTPException, ValueError) as error:
        why = type(error).__name__
    log.warning("%s: the webhook of %s did not take the morning report: %s", PLACE, variable, why)
