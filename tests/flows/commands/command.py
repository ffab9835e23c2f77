"""What tests of the commands share: their outcomes, wrong inputs, and a finished night."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import freeze_config

DATE = "2026-01-20"


class Outcome(NamedTuple):
    """What a command ended with, and what it printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


def refused(outcome: Outcome) -> str:
    """The one line of a command that ended with code 2 and printed nothing else."""
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith("nightschool: ")
    return line.removeprefix("nightschool: ")


def finish(home: Home, *overrides: str, date: str = DATE) -> dict[str, Any]:
    """Write a finished night of the starter's configuration. Returns its summary."""
    night = home.night(date)
    freeze_config(night, load_night(STARTER, overrides), fresh=False)
    interval = {"accuracy": 0.6125, "low": 0.56, "high": 0.66, "n": 400}
    both = {"champion": interval | {"accuracy": 0.055}, "candidate": interval}
    summary = {
        "night": date,
        "decision": "promoted",
        "reasons": ["arithmetic-1-2: +0.557 [0.51, 0.61], ü"],
        "target": "arithmetic-1-2",
        "accuracy": both,
        "benchmarks": {"arithmetic-1-2": both},
        "digests": {"champion": "c0ffee", "start": "c0ffee", "candidate": "f00d"},
        "serving": "f00d",
        "withheld": None,
        "way_back": "nightschool rollback",
        "verdicts": {"arithmetic": {"correct": 3, "wrong": 1}},
        "incidents": ["the engine died once"],
        "alarms": ["the grader failed on 3 completions"],
        "report": str(night / "report.html"),
    }
    (night / "summary.json").write_text(json.dumps(summary))
    (night / "report.html").write_text("<html>")
    return summary
