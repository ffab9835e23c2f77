"""What is checked before a night writes anything: each fault is one line and exit code 2."""

import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

from prefect.settings import get_current_settings

from conf.load import config_of
from conf.redact import MLFLOW, PREFECT, checked
from conf.schema import NightConfig
from conf.sections.benchmark import ExamPart
from conf.storage.home import SUMMARY, Home, InputError
from flows.commands.doctor import require
from flows.commands.promote import open_registry
from flows.run.sandbox_check import programs, require_sandbox
from flows.training.validation import is_quizzed, quizzed
from flows.web.health import check_mlflow, check_prefect
from rewards import benchmarks
from tasks.distillation import import_traces
from tasks.evaluation.evaluate import exam_problems
from tasks.evaluation.statistics import smallest_guard
from tasks.journal.lineage import line_of
from tasks.monitoring.notify import webhook
from tasks.registry.import_model import STARTER_MODEL, check_source, find_model
from tasks.registry.mlflow_registry import DAYTIME
from tasks.tracking import tracking_uri


def count_problems(config: NightConfig) -> dict[str, int]:
    """How many problems each part of the exam has. Raises InputError where one has none."""
    counts: dict[str, int] = {}
    for part in config.exam.parts:
        counts[part.name] = len(exam_problems(part, config.sandbox))
        if not counts[part.name]:
            raise InputError(f"exam: {part.name} has no problems; name other levels")
    return counts


def check_margins(config: NightConfig, counts: Mapping[str, int]) -> None:
    """A target has to have problems enough to show a gain, and a part that must not lose more than its margin enough to
    show that it does not.
    """
    exam = config.exam
    for part in exam.targets:
        if 0.5 ** (count := counts[part.name]) > exam.alpha / len(exam.targets):
            raise InputError(
                f"exam.target: {part.name}: {count} problems can never show that a candidate is better at "
                f"exam.alpha: {exam.alpha}; ask more"
            )
    guarded = {"exam.guards": exam.guards, "exam.further_targets": exam.targets if exam.further_targets else ()}
    for where, parts in guarded.items():
        for part in parts:
            if (count := counts[part.name]) < (least := smallest_guard(part.margin)):
                raise InputError(
                    f"{where}: {part.name}: {count} problems can never show a loss below its margin of {part.margin}; "
                    f"at least {least}, or a wider margin"
                )


def check_vault(config: NightConfig) -> None:
    """It must have problems of the target, and none that decide."""
    if not config.exam.vault:
        return
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
        import_traces.check_source(file.source)
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
