"""What the nights of a home have come to."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from conf.home import SUMMARY, Home, InputError
from tasks.report_evidence import rounds
from tasks.stage import MANIFEST, run_name


def nights(home: Home, running: str | None = None) -> list[dict[str, Any]]:
    """Every night with its state and a line on it, the oldest first.

    The state is `promoted` or `kept`, or, of a night that is not finished, `running` (where it is the one named so) or
    `interrupted`: the line then tells the command that goes on.
    """
    return [_entry(folder, running) for folder in sorted(home.nights.glob("????-??-??"))]


def last_report(home: Home, date: str | None) -> Path:
    """The report of a night, by default of the last that has one. Raises InputError where there is none."""
    found = sorted(home.nights.glob(f"{date or '????-??-??'}/report.html"))
    if not found:
        raise InputError(f"{home.nights}: no report{f' of {date}' if date else ''} yet; `nightschool night` makes one")
    return found[-1]


def round_metrics(folder: Path) -> list[dict[str, float]]:
    """The figures of all committed rounds of a night, in order."""
    files = [place / "checkpoint" / "metrics.json" for _, place in rounds(folder)]
    return [json.loads(file.read_text()) for file in files if file.exists()]


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
    again = ["nightschool", "night", "--config", str(folder / "config.yaml"), "--date", folder.name]
    detail = f"{detail}; go on with: {shlex.join(again)}"
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
