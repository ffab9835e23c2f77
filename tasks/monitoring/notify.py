"""Tell the owner about a night: alarms in the log, in Prefect and in MLflow, and the short report to a webhook.

A failure to show a text in Prefect or to post it is logged, and never fails the night.
"""

import json
import logging
import os
import ssl
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import httpx
from prefect.artifacts import create_markdown_artifact
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from conf.storage.durable import read_json, write_atomically
from conf.storage.home import InputError
from conf.storage.log import log
from tasks.monitoring.alarms import Alarm
from tasks.monitoring.tracking import Tracking
from tasks.report.text import plain_line

RETRIES = 1  # Prefect's default of five would hold up the night for a minute
WEBHOOK_LIMIT = 20.0  # seconds
VARIABLE = "NIGHTSCHOOL_WEBHOOK"  # of the environment


class AlarmLog:
    """Raises a night's alarms, and saves them as `alarms.json` in the night's folder to survive interruptions."""

    def __init__(self, night: Path, tracking: Tracking) -> None:
        self.night, self.tracking = night, tracking
        self.file = night / "alarms.json"
        self.alarms = {_key(alarm): alarm for alarm in (Alarm(**fields) for fields in read_json(self.file, []))}

    def record(self, found: Sequence[Alarm]) -> None:
        """Raise the new alarms. A non-severe alarm that recurs in a later round is updated but not raised again."""
        new = [alarm for alarm in found if _key(alarm) not in self.alarms]
        again = [alarm for alarm in found if alarm not in new and not alarm.severe]
        later = [alarm for alarm in again if (alarm.round or 0) > (self.alarms[_key(alarm)].round or 0)]
        if not new and not later:
            return
        self.alarms |= {_key(alarm): alarm for alarm in (*later, *new)}
        write_atomically(self.file, json.dumps([asdict(alarm) for alarm in self.alarms.values()], indent=1))
        for alarm in new:
            log.log(logging.ERROR if alarm.severe else logging.WARNING, "%s", alarm_line(alarm))
        self.publish()

    def publish(self) -> None:
        """Publish all alarms so far as one artifact of the Prefect flow run and as tags of the MLflow run."""
        if not self.alarms:
            return
        lines = [f"- {plain_line(alarm_line(alarm))}" for alarm in self._in_order()]
        text = f"# Alarms of the night {self.night.name}\n\n" + "\n".join(lines) + "\n"
        show_text("alarms", text, f"{len(lines)} in the night {self.night.name}")
        sentences = {f"alarm.{alarm.name}": alarm.sentence for alarm in reversed(self._in_order())}
        self.tracking.tag(alarms=str(len(lines)), **sentences)

    @property
    def severe(self) -> list[Alarm]:
        """The severe alarms, which stop the night's training and block promotion."""
        return [alarm for alarm in self.alarms.values() if alarm.severe]

    @property
    def sentences(self) -> list[str]:
        """The sentences of all alarms, severe alarms first."""
        return [alarm.sentence for alarm in self._in_order()]

    def _in_order(self) -> list[Alarm]:
        return sorted(self.alarms.values(), key=lambda alarm: not alarm.severe)


def alarm_line(alarm: Alarm) -> str:
    """Format an alarm as one line: `severe alarm mismatch: Sampler and trainer disagreed in round 3 …`."""
    return f"{'severe alarm' if alarm.severe else 'alarm'} {alarm.name}: {alarm.sentence}"


def _key(alarm: Alarm) -> tuple[str, bool]:
    return alarm.name, alarm.severe


def show_text(key: str, markdown: str, description: str) -> None:
    """Show a Markdown text as an artifact of the current flow run. `key`: the artifact's name in Prefect."""
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES}):
            create_markdown_artifact(key=key, description=description, markdown=markdown)
    except Exception as error:  # a server may fail in any way
        log.warning("the artifact %s could not be shown in Prefect: %s", key, error)


def webhook() -> str:
    """Return the webhook's URL, or "" if there is none. If it is not a URL, raise InputError without quoting it."""
    url = os.environ.get(VARIABLE, "")
    if url and not url.startswith(("http://", "https://")):
        raise InputError(f"{VARIABLE} holds no http:// or https:// URL; set it to the webhook's URL, or unset it")
    return url


def post_report(text: str, limit: float = WEBHOOK_LIMIT) -> None:
    """If there is a webhook, post a text as `{"text": …}`, as Slack, Mattermost, Rocket.Chat and Google Chat accept it.

    `limit`: the timeout in seconds. Redirects are not followed. A failure is logged in one line, without the URL, which
    may be secret.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)  # httpx logs URLs at lower levels
    why = f"no answer within {limit:g} s"

    def post() -> None:
        nonlocal why
        try:
            trusted = ssl.create_default_context()  # the system's certificates, not httpx's own
            answer = httpx.post(url, json={"text": text}, timeout=limit, verify=trusted)
            why = "" if answer.is_success else f"HTTP {answer.status_code}"
        except Exception as error:  # whatever the client raises: bad URL, proxy, host name or certificate
            why = type(error).__name__

    try:
        if not (url := webhook()):
            return
    except InputError as error:
        log.warning("%s", error)
        return
    posting = threading.Thread(target=post, daemon=True)  # httpx limits each read, but not the whole answer
    posting.start()
    posting.join(limit)
    if why:
        log.warning("the webhook of %s did not accept the morning report: %s", VARIABLE, why)
