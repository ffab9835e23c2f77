"""What is checked before a night writes anything: each fault is one line and exit code 2."""

import json
import os
import shutil
from typing import Any

from conf.home import Home, InputError
from conf.schema import NightConfig
from conf.urls import MLFLOW, PREFECT, checked
from flows.doctor import require
from flows.isolation import programs, require_sandbox
from rewards import benchmarks
from tasks import traces
from tasks.decision import smallest_guard
from tasks.enroll import check_source, find_model
from tasks.morning_hook import webhook


def check_night(home: Home, config: NightConfig, goes_on: bool = False) -> None:
    """Raises InputError for whatever would make the night fail for a reason that its owner can mend.

    A night that goes on has taken its room on the disk already: what it writes takes the place of what it removes.
    """
    require(home, config, room=not goes_on)
    for place, instead in {"MLFLOW_TRACKING_URI": MLFLOW, "PREFECT_API_URL": PREFECT}.items():
        checked(os.environ.get(place, ""), place, instead)
    check_source(config.student)
    if config.on_policy is not None:
        find_model(config.on_policy.teacher, config.on_policy.revision, "on_policy.teacher")
    for file in config.distill.files:
        traces.check_source(file.source)
    for source in config.benchmarks:
        if not benchmarks.configured(source).problems("train"):
            raise InputError(f"benchmarks: {source.label} has no problems to train on; name other levels")
    if (command := config.alarms.command) and shutil.which(command[0]) is None:
        raise InputError(f"alarms.command: {command[0]} is no program that can be run here; give its whole path")
    if variable := config.morning.webhook_variable:
        webhook(variable)
    _check_parts(config)
    require_sandbox(programs(config), config.sandbox)


def check_exam(config: NightConfig) -> None:
    """Raises InputError for whatever would keep a checkpoint from sitting the exam outside of a night."""
    _check_parts(config)
    require_sandbox({part.benchmark for part in config.exam.parts}, config.sandbox)


def _check_parts(config: NightConfig) -> None:
    """The exam's problems must be there, and enough of them for what they are to show."""
    for part in config.exam.parts:
        count = len(benchmarks.configured(part).problems("test")[: part.problems])
        if not count:
            raise InputError(f"exam: {part.name} has no problems; name other levels")
        if part in config.exam.guards and count < (least := smallest_guard(part.margin)):
            raise InputError(
                f"exam.guards: {part.name}: {count} problems can never show a loss below its margin of {part.margin}; "
                f"at least {least}, or a wider margin"
            )


def finished_summary(home: Home, date: str) -> dict[str, Any] | None:
    """The summary of a night that is finished; None of any other."""
    try:
        return json.loads((home.night(date) / "summary.json").read_text())
    except OSError:  # no such night; and whether the home can be read at all is for the other checks to say
        return None
