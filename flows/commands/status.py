"""What runs on a home, how far it is, how long it will take, and what the nights before have come to."""

import datetime
from typing import Any

from conf.load import config_of
from conf.storage.home import Home
from conf.storage.locks import NIGHT, holder
from flows.run.estimate import ROUND, seconds_left
from flows.run.history import last_finished, nights
from flows.run.progress import read_progress

LAST = 7  # nights that people are shown; scripts get all


def status(home: Home) -> dict[str, Any]:
    """The night that runs now (None: none does), and all nights, the oldest first. Reads only, at any time."""
    running = _running(home)
    return {"running": running, "nights": nights(home, running["night"] if running else None)}


def told(found: dict[str, Any]) -> list[str]:
    """The same for people, a line each."""
    lines = [_told_running(found["running"])] if found["running"] else []
    for entry in found["nights"][-LAST:]:
        lines.append(f"{entry['night']}  {entry['state']:12} {entry['detail']}")
        lines += [f"{'':12}alarm: {alarm}" for alarm in entry["alarms"]]
    return lines or ["no nights yet: `nightschool night` runs the first"]


def _running(home: Home) -> dict[str, Any] | None:
    held = holder(home.root)
    if not held or not held["who"].startswith(NIGHT):  # nobody, or an upkeep of a moment
        return None
    folder = home.night(held["who"].removeprefix(NIGHT))
    config, at = config_of(folder), read_progress(folder, held["pid"])
    stage = at["stage"] if at else "starting"
    in_round = ROUND.match(stage)
    return {
        "night": folder.name,
        "process": held["pid"],
        "since": held.get("since"),
        "stage": stage,
        "stage_since": at and at["at"],
        "round": int(in_round[1]) if in_round else None,
        "rounds": config and config.rounds,
        "seconds_left": config
        and seconds_left(folder, config, stage, _elapsed(at), last_finished(home.nights, config.name)),
    }


def _elapsed(progress: dict[str, Any] | None) -> float:
    if not progress or progress["done"]:
        return 0.0
    began = datetime.datetime.fromisoformat(progress["at"])
    return (datetime.datetime.now().astimezone() - began).total_seconds()


def _told_running(running: dict[str, Any]) -> str:
    stage = running["stage"]
    if running["round"]:
        stage = stage.replace(f"round {running['round']}", f"round {running['round']} of {running['rounds']}", 1)
    left = running["seconds_left"]
    rest = "nobody knows yet for how long" if left is None else _told_left(left)
    who = f"the night {running['night']} since {running['since']} (process {running['process']})"
    return f"running: {who}, {stage}; {rest}"


def _told_left(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"about {minutes} minutes more" if minutes > 1 else "about a minute more, or less"
