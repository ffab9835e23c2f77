"""The card of the model that is being taught: what it is, its last report, and the blind tests, day by day."""

import datetime
from pathlib import Path
from typing import Any

from conf.schema import NightConfig
from conf.storage.home import Home
from flows.run.history import last_finished
from flows.teaching.book import blind_test
from tasks.journal.read import valid_lines


def card(home: Home, config: NightConfig, champion: Path) -> dict[str, Any]:
    """Return the model's card, which the page shows.

    `champion` is its digest, `born` when it was made, `system` the system text, `longest` the most tokens of an answer,
    `report` whether there is one, and `days` the blind tests.
    """
    born = datetime.datetime.fromtimestamp((champion / "config.json").stat().st_mtime).astimezone()
    return {
        "name": config.name,
        "champion": champion.name,
        "born": born.isoformat(timespec="minutes"),
        "system": config.student.system,
        "longest": config.teach.max_answer_tokens,
        "report": report_of(home, config) is not None,
        "days": blind_by_day(home.journal),
    }


def report_of(home: Home, config: NightConfig) -> Path | None:
    """Return the report of the last finished night with this configuration, or None if there is none."""
    night = last_finished(home.nights, config.name)
    file = night / "report.html" if night else None
    return file if file and file.is_file() else None


def blind_by_day(journal: Path) -> list[dict[str, Any]]:
    """Return each day's blind tests, oldest first: the `day`, its `picks`, those `won` and expected by `chance`."""
    days = dict[str, dict[str, Any]]()
    for line in valid_lines(journal):
        if (found := blind_test(line.entry)) is not None:
            date = str(line.entry.day)
            day = days.setdefault(date, {"day": date, "picks": 0, "won": 0.0, "chance": 0.0})
            day["picks"] += 1
            day["won"] += found[0]
            day["chance"] += found[1]
    return [days[day] for day in sorted(days)]
