"""What is checked before a night writes anything: each fault is one line and exit code 2."""

import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

from conf.home import Home, InputError
from conf.schema import NightConfig
from conf.urls import MLFLOW, PREFECT, checked
from flows.doctor import require
from flows.isolation import programs, require_sandbox
from flows.servers import check_mlflow, check_prefect
from rewards import benchmarks
from tasks import traces
from tasks.decision import smallest_guard
from tasks.enroll import check_source, find_model
from tasks.evaluate import exam_problems
from tasks.morning_hook import webhook
from tasks.tracking import tracking_uri


def check_night(home: Home, config: NightConfig, goes_on: bool = False) -> None:
    """Raises InputError for whatever would make the night fail for a reason that its owner can mend.

    A night that goes on has taken its room on the disk already: what it writes takes the place of what it removes.
    """
    require(home, config, room=not goes_on)
    for place, instead in {"MLFLOW_TRACKING_URI": MLFLOW, "PREFECT_API_URL": PREFECT}.items():
        checked(os.environ.get(place, ""), place, instead)
    check_mlflow(tracking_uri(home, config))
    check_prefect(os.environ.get("PREFECT_API_URL", ""))
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
    _check_margins(config, _count_problems(config))
    _check_vault(config)
    require_sandbox(programs(config), config.sandbox)


def check_exam(config: NightConfig) -> None:
    """Raises InputError for whatever would keep a checkpoint from sitting the exam outside of a night."""
    _count_problems(config)
    require_sandbox({part.benchmark for part in config.exam.parts}, config.sandbox)


def _count_problems(config: NightConfig) -> dict[str, int]:
    """How many problems each part of the exam has. Raises InputError where one has none."""
    counts: dict[str, int] = {}
    for part in config.exam.parts:
        counts[part.name] = len(exam_problems(part, config.sandbox))
        if not counts[part.name]:
            raise InputError(f"exam: {part.name} has no problems; name other levels")
    return counts


def _check_margins(config: NightConfig, counts: Mapping[str, int]) -> None:
    """A part that must not lose more than its margin has to have problems enough to show that it does not."""
    exam = config.exam
    guarded = {"exam.guards": exam.guards, "exam.further_targets": exam.targets if exam.further_targets else ()}
    for where, parts in guarded.items():
        for part in parts:
            if (count := counts[part.name]) < (least := smallest_guard(part.margin)):
                raise InputError(
                    f"{where}: {part.name}: {count} problems can never show a loss below its margin of {part.margin}; "
                    f"at least {least}, or a wider margin"
                )


def _check_vault(config: NightConfig) -> None:
    """It must have problems of the target, and none that decide."""
    known = {problem.problem_id for part in config.exam.parts for _, problem in exam_problems(part, config.sandbox)}
    for part in config.exam.vault_parts:
        spare = [problem.problem_id for _, problem in exam_problems(part, config.sandbox)]
        if not spare and part.name == config.exam.target.name:
            raise InputError(
                f"exam.vault: {part.name} has no problems but those that decide; leave it some: "
                f"--set exam.target.problems=… (less than {config.exam.target.problems})"
            )
        if known & set(spare):
            raise InputError(f"exam.vault: {part.name}: some problems would be in the vault and in a part that decides")


def finished_summary(home: Home, date: str) -> dict[str, Any] | None:
    """The summary of a night that is finished; None of any other."""
    try:
        return json.loads((home.night(date) / "summary.json").read_text())
    except OSError:  # no such night; and whether the home can be read at all is for the other checks to say
        return None
