"""What the nights of a home have come to."""

import json
from pathlib import Path
from typing import Any

from conf.home import Home, InputError
from tasks.stage import MANIFEST, run_name


def nights(home: Home) -> list[dict[str, Any]]:
    """Every night with its state (`promoted`, `kept`, `unfinished`) and a line on it, the oldest first."""
    return [_entry(folder) for folder in sorted(home.nights.glob("????-??-??"))]


def last_report(home: Home, date: str | None) -> Path:
    """The report of a night, by default of the last that has one. Raises InputError where there is none."""
    found = sorted(home.nights.glob(f"{date or '????-??-??'}/report.html"))
    if not found:
        raise InputError(f"{home.nights}: no report{f' of {date}' if date else ''} yet; `nightschool night` makes one")
    return found[-1]


def _entry(folder: Path) -> dict[str, Any]:
    summary = folder / "summary.json"
    if summary.exists():
        found = json.loads(summary.read_text())
        accuracy = {who: found["accuracy"][who]["accuracy"] for who in ("champion", "candidate")}
        detail = f"{found['target']}: {accuracy['champion']:.3f} → {accuracy['candidate']:.3f}"
        return {"night": folder.name, "state": found["decision"], "detail": detail, "alarms": found["alarms"]}
    committed = sorted(folder.rglob(MANIFEST), key=lambda file: file.stat().st_mtime)
    last = run_name(str(committed[-1].parent.relative_to(folder))) if committed else "nothing yet"
    return {"night": folder.name, "state": "unfinished", "detail": f"committed last: {last}", "alarms": []}
