"""Record a night's alarms and raise each of them once: in the log, in Prefect and in MLflow."""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from conf.storage.durable import read_json, write_atomically
from tasks.monitoring.alarms import Alarm
from tasks.monitoring.prefect_artifacts import show_text
from tasks.monitoring.tracking import Tracking
from tasks.report.text import plain_line

log = logging.getLogger("nightschool")


class AlarmLog:
    """Raises a night's alarms, and saves them as `alarms.json` in the night's folder to survive interruptions."""

    def __init__(self, night: Path, tracking: Tracking) -> None:
        self.night, self.tracking = night, tracking
        self.file = night / "alarms.json"
        self.alarms = {_key(alarm): alarm for alarm in (Alarm(**fields) for fields in read_json(self.file, []))}

    def record(self, found: Sequence[Alarm]) -> None:
        """Raise the new alarms. A non-severe alarm that recurs in a later round is updated but not raised again."""
        new = [alarm for alarm in found if _key(alarm) not in self.alarms]
        later = [alarm for alarm in found if alarm not in new and self._is_later(alarm)]
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

    def _is_later(self, alarm: Alarm) -> bool:
        return not alarm.severe and (alarm.round or 0) > (self.alarms[_key(alarm)].round or 0)


def alarm_line(alarm: Alarm) -> str:
    """Format an alarm as one line: `severe alarm mismatch: Sampler and trainer disagreed in round 3 …`."""
    return f"{'severe alarm' if alarm.severe else 'alarm'} {alarm.name}: {alarm.sentence}"


def _key(alarm: Alarm) -> tuple[str, bool]:
    return alarm.name, alarm.severe
