"""Check what a night needs before it writes anything: each fault is an InputError of one line (exit code 2)."""

import json
import logging
import math
import os
import shutil
from collections.abc import Callable
from typing import Any

from prefect.settings import get_current_settings

from conf.load import config_of
from conf.redact import MLFLOW, PREFECT, without_password
from conf.schema import NightConfig
from conf.storage.home import SUMMARY, Home, InputError
from flows.run.machine import require_machine
from flows.run.registry import open_registry
from flows.run.sandbox_check import program_benchmarks, require_sandbox
from flows.run.speed import check_hours
from flows.training.judge import CHAMPION, find_judge
from flows.training.validation import is_quizzed, quiz_part
from flows.web.health import check_mlflow, check_prefect
from rewards import benchmarks
from tasks.cluster.connection import connect
from tasks.distillation import import_traces
from tasks.evaluation.evaluate import exam_problems
from tasks.evaluation.statistics import MOST_BAD_LUCK, USUAL_FLIPS, bad_luck, smallest_guard
from tasks.journal.lineage import line_of
from tasks.monitoring.notify import webhook
from tasks.registry.import_model import STARTER_MODEL, check_source, find_model
from tasks.registry.mlflow_registry import DAYTIME
from tasks.self_play.ask import asking
from tasks.tracking import tracking_uri

log = logging.getLogger("nightschool")


def check_night(home: Home, config: NightConfig, resumed: bool = False) -> None:
    """Raise InputError for whatever would make the night fail for a reason that its owner can correct.

    A `resumed` night has used its room on the disk already: what it writes replaces what it removes.
    """
    require_machine(home, config, room=not resumed)
    for check in night_checks(home, config).values():
        check()
    if not resumed:
        check_hours(home, config)
    if config.on_policy is not None and config.on_policy.teacher != STARTER_MODEL:  # perhaps gigabytes to download
        find_model(config.on_policy.teacher, config.on_policy.revision, "on_policy.teacher")
    if config.judge is not None and config.judge.checkpoint not in (None, CHAMPION):
        find_judge(config.judge.checkpoint)


def night_checks(home: Home, config: NightConfig) -> dict[str, Callable[[], None]]:
    """Return the checks of a configuration, by what each is about; each raises InputError."""
    checks: dict[str, Callable[[], None]] = {
        "MLflow": lambda: _check_mlflow(home, config),
        "Prefect": _check_prefect,
        "student": lambda: check_source(config.student),
        **({"cluster": lambda: connect(address)} if (address := config.cluster.address) else {}),
        "traces": lambda: _check_traces(config),
        "training": lambda: _check_training(config),
        "hooks": lambda: _check_hooks(config),
        "exam": lambda: _check_margins(config),
        "vault": lambda: check_vault(config),
        "quizzes": lambda: _check_quizzes(config),
    }
    if benchmarks_of_programs := program_benchmarks(config):
        checks["sandbox"] = lambda: require_sandbox(benchmarks_of_programs, config.sandbox)
    return checks


def _count_problems(config: NightConfig) -> dict[str, int]:
    counts = {part.name: len(exam_problems(part, config.sandbox)) for part in config.exam.parts}
    for name, count in counts.items():
        if not count:
            raise InputError(f"exam: {name} has no problems; name other levels")
    return counts


def _check_margins(config: NightConfig) -> None:
    """Refuse a target too small to ever show a gain, and a guard too small to ever show that it kept its margin."""
    exam, counts = config.exam, _count_problems(config)
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
            if (chance := bad_luck(count, part.margin)) > MOST_BAD_LUCK:
                enough = math.ceil(6.2 * USUAL_FLIPS / part.margin**2)
                log.warning(
                    "%s: %s: with %d problems and a margin of %g, a candidate that is no worse fails in %.0f %% of "
                    "nights in which a tenth of the answers flips; %d problems make it 20 %%",
                    *(where, part.name, count, part.margin, 100 * chance, enough),
                )


def check_vault(config: NightConfig) -> None:
    """Raise InputError where the vault has no problems of the target, or some of those that decide."""
    if not config.exam.vault:
        return
    known = {problem.problem_id for part in config.exam.parts for problem in exam_problems(part, config.sandbox)}
    for part in config.exam.vault_parts:
        spare = [problem.problem_id for problem in exam_problems(part, config.sandbox)]
        if not spare and part.name == config.exam.target.name:
            raise InputError(
                f"exam.vault: {part.name} has no problems but those that decide; leave it some: "
                f"--set exam.target.problems=… (less than {config.exam.target.problems})"
            )
        if known & set(spare):
            raise InputError(f"exam.vault: {part.name}: some problems would be in the vault and in a part that decides")


def check_exam(config: NightConfig) -> None:
    """Raise InputError for whatever would make an exam outside of a night fail."""
    _count_problems(config)
    require_sandbox({part.benchmark for part in config.exam.parts}, config.sandbox)


def check_fresh(home: Home, date: str) -> None:
    """Raise InputError where `--fresh` would delete a night that made the serving model, or one of its ancestors."""
    config = config_of(home.night(date))
    registry = config and open_registry(home, config)
    serving = registry and registry.named(DAYTIME)
    if serving and any(night.name == date for night, _ in line_of(serving.digest, home.nights)):
        raise InputError(
            f"the night {date} made the serving model or one of its ancestors, and records what they have learned: "
            "first `nightschool rollback` to a version from before it, or name another --date"
        )


def finished_summary(home: Home, date: str) -> dict[str, Any] | None:
    """Return the summary of a finished night; None where it is not finished, or was never begun."""
    try:
        return json.loads((home.night(date) / SUMMARY).read_text())
    except OSError:  # whether the home can be read at all is for other checks to say
        return None


def _check_mlflow(home: Home, config: NightConfig) -> None:
    without_password(os.environ.get("MLFLOW_TRACKING_URI", ""), "MLFLOW_TRACKING_URI", MLFLOW)
    check_mlflow(tracking_uri(home, config))


def _check_prefect() -> None:
    if api := get_current_settings().api.url:  # of a profile, too
        without_password(api, "PREFECT_API_URL", PREFECT)
        check_prefect(api)


def _check_traces(config: NightConfig) -> None:
    for file in config.distill.files:
        import_traces.check_source(file.source)


def _check_training(config: NightConfig) -> None:
    for source in config.benchmarks:
        if not benchmarks.configured(source).problems("train"):
            raise InputError(f"benchmarks: {source.label} has no problems to train on; name other levels")
    played = {bool(benchmarks.configured(source).environment) for source in config.benchmarks}
    if len(played) > 1:
        raise InputError("benchmarks: an environment and single questions cannot share a round; give each a night")
    if True in played and any(step.kind == "on_policy" for step in config.steps):
        raise InputError("stages: {on_policy: …} is for single answers; an environment's rounds are {grpo: …}")
    if any(step.kind == "self_play" for step in config.steps):
        asking(config.benchmarks)


def _check_hooks(config: NightConfig) -> None:
    if (command := config.alarms.command) and shutil.which(command[0]) is None:
        raise InputError(f"alarms.command: {command[0]} is not a program that can be run here; give its whole path")
    if variable := config.morning.webhook_variable:
        webhook(variable)


def _check_quizzes(config: NightConfig) -> None:
    """A quiz asks training problems of the exam's target, so there must be some."""
    if not any(is_quizzed(config, number) for number in range(1, config.rounds + 1)):
        return
    part = quiz_part(config, config.grpo.quiz_problems)
    try:
        if not benchmarks.configured(part).problems("train"):
            raise InputError(f"{part.name} has no training problems for a quiz")
    except InputError as error:
        raise InputError(f"grpo.quiz_every_rounds: {error}; 0 switches the quizzes off") from error
