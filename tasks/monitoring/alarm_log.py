"""The alarms of a night: each is raised once, wherever its owner may look, and remembered through interruptions."""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from conf.storage.durable import write_atomically
from tasks.monitoring.alarms import Alarm
from tasks.monitoring.notify import tell_owner
from tasks.monitoring.prefect_artifacts import show_text
from tasks.report.text import plain_line
from tasks.tracking import Tracking

ARTIFACT = "alarms"

log = logging.getLogger("nightschool")


class AlarmLog:
    """Raises alarms in the log, in Prefect, in MLflow and by the owner's command; `alarms.json` in the night's folder
    remembers which.
    """

    def __init__(self, night: Path, tracking: Tracking, command: Sequence[str] | None) -> None:
        self.night, self.tracking, self.command = night, tracking, command
        self.file = night / "alarms.json"
        kept = json.loads(self.file.read_text()) if self.file.exists() else []
        self.alarms = {_identity(alarm): alarm for alarm in (Alarm(**fields) for fields in kept)}

    def record(self, found: Sequence[Alarm]) -> None:
        """Raises those that are new. One that is known gets its sentence over later rounds, unless it is severe.

        It is noted before it is raised: the owner's command is not run again for it, wherever the night is killed.
        """
        new = [alarm for alarm in found if _identity(alarm) not in self.alarms]
        later = [alarm for alarm in found if alarm not in new and self._tells_more(alarm)]
        if not new and not later:
            return
        self.alarms |= {_identity(alarm): alarm for alarm in (*later, *new)}
        write_atomically(self.file, json.dumps([asdict(alarm) for alarm in self.alarms.values()], indent=1))
        for alarm in new:
            log.log(logging.ERROR if alarm.severe else logging.WARNING, "%s", told(alarm))
        for alarm in new:
            if self.command:
                tell_owner(self.command, alarm, self.night.name, self.night / "logs" / "alarms-command.log")
        self.publish()

    def publish(self) -> None:
        """Shows all alarms so far as an artifact of this flow run and as tags of MLflow's run; nothing without any."""
        if not self.alarms:
            return
        lines = [f"- {plain_line(told(alarm))}" for alarm in self._in_order()]
        text = f"# Alarms of the night {self.night.name}\n\n" + "\n".join(lines) + "\n"
        show_text(ARTIFACT, text, f"{len(lines)} in the night {self.night.name}")
        sentences = {f"alarm.{alarm.name}": alarm.sentence for alarm in reversed(self._in_order())}
        self.tracking.tag(alarms=str(len(lines)), **sentences)

    @property
    def severe(self) -> list[Alarm]:
        """The alarms after which nothing is learned and nothing promoted."""
        return [alarm for alarm in self.alarms.values() if alarm.severe]

    @property
    def sentences(self) -> list[str]:
        """What the report says first; the severe alarms before the others."""
        return [alarm.sentence for alarm in self._in_order()]

    def _in_order(self) -> list[Alarm]:
        return sorted(self.alarms.values(), key=lambda alarm: not alarm.severe)

    def _tells_more(self, alarm: Alarm) -> bool:
        return not alarm.severe and (alarm.round or 0) > (self.alarms[_identity(alarm)].round or 0)


def told(alarm: Alarm) -> str:
    """An alarm in one line."""
    return f"{'severe alarm' if alarm.severe else 'alarm'} {alarm.name}: {alarm.sentence}"


def _identity(alarm: Alarm) -> tuple[str, bool]:
    return alarm.name, alarm.severe
