"""A night as a trace for a browser (ui.perfetto.dev, chrome://tracing), with one bar a stage."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.nights.timed import Moment, moments

FLOW, STATE = 1, 2  # the rows of the picture


def write_trace(folder: Path, file: Path) -> None:
    """Write the stages of a night, and in another row the writing of the states, as Chrome's trace events."""
    found = moments(folder)
    rows = [_row(FLOW, "the flow"), _row(STATE, "the state")]
    events = [*rows, *stage_events(found), *_state_events(folder, found[0].at)]
    file.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


def stage_events(found: Sequence[Moment]) -> list[dict[str, Any]]:
    """Return one event per stage, in microseconds since the first."""
    began: dict[str, float] = {}
    events = []
    for moment in found:
        if moment.done:
            events.append(
                _event(FLOW, moment.stage, began[moment.stage] - found[0].at, moment.at - began[moment.stage])
            )
        else:
            began[moment.stage] = moment.at
    return events


def _state_events(folder: Path, start: float) -> list[dict[str, Any]]:
    """Return the events of the stages `checkpoint`, which run beside the flow and end when their manifest appears."""
    events = []
    for manifest in sorted(folder.glob("round-*/checkpoint/manifest.json")):
        seconds = json.loads(manifest.read_text())["seconds"]
        name = manifest.parent.parent.name
        events.append(_event(STATE, f"{name} checkpoint", manifest.stat().st_mtime - seconds - start, seconds))
    return events


def _event(row: int, name: str, begin: float, seconds: float) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": row, "name": name, "ts": begin * 1e6, "dur": seconds * 1e6}


def _row(row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": row, "name": "thread_name", "args": {"name": name}}
