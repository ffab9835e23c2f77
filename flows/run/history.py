"""What the nights of a home have come to."""

import datetime
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from conf.load import config_of, identity
from conf.schema import NightConfig
from conf.storage.home import SHORT_REPORT, SUMMARY, Home, InputError
from tasks.layout import committed_rounds
from tasks.stage import MANIFEST, run_name


def nights(home: Home, running: str | None = None) -> list[dict[str, Any]]:
    """Every night with its state and a line on it, the oldest first.

    The state is `promoted` or `kept`, or, of a night that is not finished, `running` (where it is the one named so) or
    `interrupted`: the line then tells the command that goes on.
    """
    return [_entry(folder, running) for folder in sorted(home.nights.glob("????-??-??"))]


def unfinished_before(home: Home, date: str, config: NightConfig) -> str | None:
    """The date of the newest night, where that was interrupted the day before `date` and is of this configuration.

    So the same command goes on with it after noon, too. An older one is its owner's to name.
    """
    newest = max(home.nights.glob("????-??-??"), default=None)
    day_before = (datetime.date.fromisoformat(date) - datetime.timedelta(days=1)).isoformat()
    if newest is None or newest.name != day_before or (newest / SUMMARY).exists():
        return None
    known = config_of(newest)
    return newest.name if known and identity(known) == identity(config) else None


def way_on(night: Path) -> str:
    """The command that goes on with the night of a folder."""
    return shlex.join(["nightschool", "night", "--config", str(night / "config.yaml"), "--date", night.name])


def finished(nights: Path, name: str) -> Iterator[Path]:
    """The folders of the finished nights of a configuration's name, the newest first."""
    for summary in sorted(nights.glob(f"????-??-??/{SUMMARY}"), reverse=True):
        if (known := config_of(summary.parent)) and known.name == name:
            yield summary.parent


def last_finished(nights: Path, name: str) -> Path | None:
    """The newest of them."""
    return next(finished(nights, name), None)


def usual_seconds(night: Path | None) -> dict[str, float]:
    """The longest that each stage took in a night, by the stage's name, seconds; nothing of no night."""
    found: dict[str, float] = {}
    for file in night.rglob(MANIFEST) if night else ():
        with suppress(ValueError, KeyError, TypeError):  # damaged since; what it says is a help and no more
            manifest = json.loads(file.read_text())
            found[manifest["stage"]] = max(seconds_of(manifest), found.get(manifest["stage"], 0.0))
    updates = [figures.get("seconds_update", 0.0) for figures in round_metrics(night)] if night else []
    return found | ({"update": max(updates)} if updates else {})


def seconds_of(manifest: Mapping[str, Any]) -> float:
    """How long a committed stage took; of an exam, what it took to sit it, be it on another night."""
    return manifest.get("figures", {}).get("seconds_sat", manifest["seconds"])


def last_report(home: Home, date: str | None) -> Path:
    """The report of a night, by default of the last that has one. Raises InputError where there is none."""
    found = sorted(home.nights.glob(f"{date or '????-??-??'}/report.html"))
    if not found:
        raise InputError(f"{home.nights}: no report{f' of {date}' if date else ''} yet; `nightschool night` makes one")
    return found[-1]


def short_report(report: Path) -> str:
    """The short form that lies beside a report. Raises InputError where there is none."""
    try:
        return (report.parent / SHORT_REPORT).read_text().rstrip()
    except FileNotFoundError:
        raise InputError(f"{report}: an earlier version wrote it, without a short form; open it in a browser") from None


def round_metrics(folder: Path) -> list[dict[str, float]]:
    """The figures of all committed rounds of a night, in order."""
    return [json.loads((place / "checkpoint" / "metrics.json").read_text()) for place in committed_rounds(folder)]


def _entry(folder: Path, running: str | None) -> dict[str, Any]:
    summary = folder / SUMMARY
    if summary.exists():
        found = json.loads(summary.read_text())
        accuracy = {who: found["accuracy"][who]["accuracy"] for who in ("champion", "candidate")}
        detail = f"{found['target']}: {accuracy['champion']:.3f} → {accuracy['candidate']:.3f}"
        return {"night": folder.name, "state": found["decision"], "detail": detail, "alarms": found["alarms"]}
    detail = f"committed last: {_last_committed(folder)}"
    if folder.name == running:
        return {"night": folder.name, "state": "running", "detail": detail, "alarms": _raised(folder)}
    detail = f"{detail}; go on with: {way_on(folder)}"
    return {"night": folder.name, "state": "interrupted", "detail": detail, "alarms": _raised(folder)}


def _raised(folder: Path) -> list[str]:
    """What a night that is not finished has raised so far."""
    file = folder / "alarms.json"
    return [alarm["sentence"] for alarm in json.loads(file.read_text())] if file.exists() else []


def _last_committed(folder: Path) -> str:
    # os.walk: what a night removes meanwhile is passed over
    committed = {
        Path(place): _moment(Path(place) / MANIFEST) for place, _, files in os.walk(folder) if MANIFEST in files
    }
    if not committed:
        return "nothing yet"
    return run_name(str(max(committed, key=lambda place: committed[place]).relative_to(folder)))


def _moment(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
