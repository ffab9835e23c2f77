"""`nightschool status`: show what is running, how much time is left, and what the last nights decided."""

import datetime
import math
import os
import time
from pathlib import Path
from typing import Any

from conf.load import config_of
from conf.schema import NightConfig
from conf.storage.home import Home
from conf.storage.locks import NIGHT, holder, server_of
from flows.run.dates import Hours
from flows.run.history import ROUND, first_start, last_finished, nights, read_progress, seconds_left

LAST = 7  # nights that the terminal shows; --json has all


def status(home: Home) -> dict[str, Any]:
    """Return the running night or None, the running server's process ID or None, and all nights, oldest first."""
    running = _running(home)
    all_nights = nights(home, running["night"] if running else None)
    return {"running": running, "serving": server_of(home.root), "nights": all_nights}


def lines_of(home: Home, state: dict[str, Any]) -> list[str]:
    """Format the result of `status` as readable lines."""
    lines = [_running_line(state["running"])] if state["running"] else []
    if state["serving"]:
        lines.append(f"serving: the model `daytime`, by nightschool serve or teach (process {state['serving']})")
    for entry in state["nights"][-LAST:]:
        lines.append(f"{entry['night']}  {entry['state']:12} {entry['detail']}")
        lines += [f"{'':12}alarm: {alarm}" for alarm in entry["alarms"]]
    if not state["nights"]:
        unset = "" if os.environ.get("NIGHTSCHOOL_HOME") else " (NIGHTSCHOOL_HOME is not set)"
        lines.append(f"no nights in {home.root}{unset}; `nightschool night` runs the first")
    return lines


def _running(home: Home) -> dict[str, Any] | None:
    held = holder(home.root)
    if not held or not held["who"].startswith(NIGHT):  # nobody, or a prune that will soon be done
        return None
    folder = home.night(held["who"].removeprefix(NIGHT))
    config, progress = config_of(folder), read_progress(folder, held["pid"])
    stage = progress["stage"] if progress else "starting"
    in_round = ROUND.match(stage)
    return {
        "night": folder.name,
        "process": held["pid"],
        "since": held.get("since"),
        "stage": stage,
        "stage_since": progress and progress["at"],
        "round": int(in_round[1]) if in_round else None,
        "rounds": config and config.rounds,
        "seconds_left": config and _seconds_left(home, folder, config, _elapsed(progress)),
    }


def _seconds_left(home: Home, folder: Path, config: NightConfig, elapsed: float) -> float | None:
    """Return the time that the night will still take, as an earlier night did, but at most until its hours end."""
    usual = seconds_left(folder, config, elapsed, last_finished(home.nights, config.name))
    end = Hours.of(config, folder.name, first_start(folder)).end
    return min((left for left in (usual, end - time.time()) if left is not None and left < math.inf), default=None)


def _elapsed(progress: dict[str, Any] | None) -> float:
    if not progress or progress["done"]:
        return 0.0
    began = datetime.datetime.fromisoformat(progress["at"])
    return (datetime.datetime.now().astimezone() - began).total_seconds()


def _running_line(running: dict[str, Any]) -> str:
    stage, left = running["stage"], "the time left is not known yet"
    if running["round"]:
        stage = stage.replace(f"round {running['round']}", f"round {running['round']} of up to {running['rounds']}", 1)
    if running["seconds_left"] is not None:
        minutes = round(running["seconds_left"] / 60)
        left = f"about {minutes} minutes left" if minutes > 1 else "about a minute left, or less"
    night = f"the night {running['night']} since {running['since']} (process {running['process']})"
    return f"running: {night}, {stage}; {left}"
