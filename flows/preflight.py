"""What is checked before a night writes anything: each fault is one line and exit code 2."""

import json
import os
import shutil
from typing import Any

from prefect.settings import get_current_settings

from conf.benchmark import ExamPart
from conf.home import SUMMARY, Home, InputError
from conf.load import config_of
from conf.schema import NightConfig
from conf.urls import MLFLOW, PREFECT, checked
from flows.doctor import require
from flows.exam_checks import check_margins, check_vault, count_problems
from flows.isolation import programs, require_sandbox
from flows.open_registry import open_registry
from flows.quizzes import is_quizzed, quizzed
from flows.servers import check_mlflow, check_prefect
from rewards import benchmarks
from tasks import traces
from tasks.enroll import STARTER_MODEL, check_source, find_model
from tasks.lineage import line_of
from tasks.morning_hook import webhook
from tasks.registry import DAYTIME
from tasks.tracking import tracking_uri


def check_night(home: Home, config: NightConfig, goes_on: bool = False) -> None:
    """Raises InputError for whatever would make the night fail for a reason that its owner can mend.

    A night that goes on has taken its room on the disk already: what it writes takes the place of what it removes.
    """
    require(home, config, room=not goes_on)
    checked(os.environ.get("MLFLOW_TRACKING_URI", ""), "MLFLOW_TRACKING_URI", MLFLOW)
    if api := get_current_settings().api.url:  # of a profile, too
        checked(api, "PREFECT_API_URL", PREFECT)
    check_mlflow(tracking_uri(home, config))
    if api:
        check_prefect(api)
    check_source(config.student)
    if config.on_policy is not None and config.on_policy.teacher != STARTER_MODEL:
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
    check_margins(config, count_problems(config))
    check_vault(config)
    if any(is_quizzed(config, number) for number in range(1, config.rounds + 1)):
        _check_quiz(quizzed(config))
    require_sandbox(programs(config), config.sandbox)


def _check_quiz(part: ExamPart) -> None:
    """A quiz asks training problems of what the exam asks, and there may be none of it."""
    try:
        there = benchmarks.configured(part).problems("train")
    except InputError as error:
        raise InputError(f"grpo.quiz_every_rounds: {error}; 0 leaves the quizzes out") from error
    if not there:
        raise InputError(
            f"grpo.quiz_every_rounds: {part.name} has no training problems that a quiz could ask; 0 leaves them out"
        )


def check_exam(config: NightConfig) -> None:
    """Raises InputError for whatever would keep a checkpoint from sitting the exam outside of a night."""
    count_problems(config)
    require_sandbox({part.benchmark for part in config.exam.parts}, config.sandbox)


def check_fresh(home: Home, config: NightConfig, date: str) -> None:
    """Raises InputError for a night that made the model which serves, or one that this was made from.

    Begun anew, by whatever `config`, it could tell no more what they have learnt: all of it would be taught once more.
    """
    registry = open_registry(home, config_of(home.night(date)) or config)
    serving = registry and registry.named(DAYTIME)
    if serving and any(night.name == date for night, _ in line_of(serving.digest, home.nights)):
        raise InputError(
            f"the night {date} made the model that serves, or one that this was made from, and knows what they have "
            "learnt: `nightschool rollback` to one from before it, then --fresh; or name another --date"
        )


def finished_summary(home: Home, date: str) -> dict[str, Any] | None:
    """The summary of a night that is finished; None of any other."""
    try:
        return json.loads((home.night(date) / SUMMARY).read_text())
    except OSError:  # no such night; and whether the home can be read at all is for the other checks to say
        return None
