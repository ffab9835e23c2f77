"""Checks that run before a night writes anything. Each fault raises a one-line InputError (exit code 2)."""

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

from prefect.settings import get_current_settings

from conf.schema import NightConfig, SandboxConfig
from conf.sections.benchmark import PROGRAMS
from conf.sections.redact import PREFECT, without_password
from conf.storage.home import SUMMARY, Home, InputError
from conf.storage.log import log
from flows.run.machine import Finding, require_machine
from flows.run.speed import Forecast, forecast
from flows.training.quizzes import BETWEEN_ROUNDS, is_quizzed, quiz_part
from flows.web.health import check_mlflow, check_prefect
from rewards.data import benchmarks
from rewards.programs.policy import missing_layers, tolerated
from rewards.sandbox import Layer, Sandbox, SandboxUnavailable
from tasks.distillation import trace_sources
from tasks.evaluation.decide import MOST_BAD_LUCK
from tasks.evaluation.sequential import detects, looks
from tasks.evaluation.statistics import USUAL_FLIPS, bad_luck, smallest_guard
from tasks.monitoring.notify import webhook
from tasks.monitoring.tracking import tracking_uri
from tasks.registry.import_model import STARTER_MODEL, check_source, find_model
from tasks.rollouts.self_play import proposing_benchmark
from tasks.workers.connection import connect

NAMES: dict[Layer, str] = {"seccomp": "seccomp", "landlock": "Landlock"}
ELSEWHERE = "no program can be judged here; leave mbpp and humaneval out, or run on another machine"
SMALL_EXAM = 400  # problems; with fewer, the night logs the gain that its exam can detect


def check_night(home: Home, config: NightConfig, resumed: bool = False) -> Forecast | None:
    """Raise InputError if the night would fail because of a fault that its owner can fix. May download the teacher.

    Returns the forecast of a night that is not `resumed`, if there is one.
    """
    found = check_plan(home, config, resumed)
    if config.on_policy is not None and config.on_policy.teacher != STARTER_MODEL:  # may be gigabytes
        find_model(config.on_policy.teacher, None, "on_policy.teacher")
    return found


def check_plan(home: Home, config: NightConfig, resumed: bool = False) -> Forecast | None:
    """Make the checks of `check_night` that download no model, and return the same.

    A `resumed` night needs no further disk space, because what it writes replaces what it removes.
    """
    require_machine(home, config, room=not resumed)
    for check in night_checks(home, config).values():
        check()
    return None if resumed else forecast(home, config)


def night_checks(home: Home, config: NightConfig) -> dict[str, Callable[[], object]]:
    """Return the checks of a configuration, by topic. Each raises InputError if it fails."""
    checks: dict[str, Callable[[], object]] = {
        "MLflow": lambda: check_mlflow(tracking_uri(home, config)),
        "Prefect": _check_prefect,
        "student": lambda: check_source(config.student, home.students),
        **({"cluster": lambda: connect(address)} if (address := config.cluster.address) else {}),
        "traces": lambda: [trace_sources.check_source(file.source) for file in config.distill.files],
        "training": lambda: _check_training(config),
        "webhook": webhook,
        "exam": lambda: _check_margins(config),
        "quizzes": lambda: _check_quizzes(config),
    }
    if benchmarks_of_programs := program_benchmarks(config):
        checks["sandbox"] = lambda: require_sandbox(benchmarks_of_programs, config.sandbox)
    return checks


def layers(config: NightConfig) -> Iterator[Finding]:
    """Check each kernel layer of the sandbox. A missing layer is an error if the night needs it, or else a warning."""
    missing = missing_layers()
    for layer, name in NAMES.items():
        if layer in missing:
            needed = program_benchmarks(config) and layer not in config.sandbox.allow_missing
            what, _, advice = missing[layer].removeprefix(f"{name}: ").partition("; ")
            without = f"or go without it: --set 'sandbox.allow_missing=[{layer}]'"
            yield Finding(name, "error" if needed else "warning", what, f"{advice or ELSEWHERE}; {without}")
        else:
            yield Finding(name, "ok", "works")


def program_benchmarks(config: NightConfig) -> set[str]:
    """Return the names of the night's training and exam benchmarks whose answers are programs."""
    named = {entry.name for entry in config.benchmarks} | {part.benchmark for part in config.exam.parts}
    return named & set(PROGRAMS)


def require_sandbox(names: Collection[str], config: SandboxConfig) -> None:
    """Start the sandbox once if a benchmark needs it, so that its canaries run. Raises InputError if that fails."""
    needing = sorted(set(names) & set(PROGRAMS))
    if not needing:
        return
    try:
        with Sandbox(without=tolerated(config)):
            pass
    except SandboxUnavailable as error:
        reason = " ".join(str(error).split())
        raise InputError(f"sandbox: {' and '.join(needing)} cannot be judged on this machine: {reason}") from error


def _count_problems(config: NightConfig) -> dict[str, int]:
    counts = {part.name: len(benchmarks.exam_problems(part, config.sandbox)) for part in config.exam.parts}
    for name, count in counts.items():
        if not count:
            raise InputError(f"exam: {name} has no problems; name other levels")
    return counts


def _check_margins(config: NightConfig) -> None:
    """Refuse a target that is too small to ever show a gain, and a guard too small to pass even if no answer changes.

    Also refuses a part that asks for more problems than its benchmark has. Warns if the target is small, or if the
    guards together would too often reject a candidate that is no worse than the champion.
    """
    exam, counts = config.exam, _count_problems(config)
    for part in exam.parts:
        if part.problems is not None and (count := counts[part.name]) < part.problems:
            raise InputError(
                f"exam: {part.name} has {count} problems, not {part.problems}; leave out `problems` for all"
            )
    if 0.5 ** (count := counts[exam.target.name]) > exam.alpha:
        raise InputError(
            f"exam.target: {exam.target.name}: {count} problems are too few to show a gain at "
            f"exam.alpha: {exam.alpha}; use more"
        )
    if count < SMALL_EXAM and (detected := detects(looks(count), exam.alpha)):
        log.warning("exam.target: %d problems detect %s", count, detected)
    passed = 1.0
    for part in exam.guards:
        if (count := counts[part.name]) < (least := smallest_guard(part.margin)):
            raise InputError(
                f"exam.guards: {part.name}: {count} problems are too few to show that a loss is within the margin of "
                f"{part.margin}; use at least {least}, or widen the margin"
            )
        passed *= 1 - bad_luck(count, part.margin)
    if 1 - passed > MOST_BAD_LUCK:
        log.warning(
            "exam.guards: on nights when %.0f %% of the answers flip, they reject an equally good candidate %.0f %% of "
            "the time; use more problems or wider margins",
            *(100 * USUAL_FLIPS, 100 * (1 - passed)),
        )


def check_exam(config: NightConfig) -> None:
    """Raise InputError if a standalone exam with this configuration would fail."""
    _count_problems(config)
    require_sandbox({part.benchmark for part in config.exam.parts}, config.sandbox)


def finished_summary(home: Home, date: str) -> dict[str, Any] | None:
    """Return the summary of a finished night, or None if the night is unfinished or was never begun."""
    try:
        return json.loads((home.night(date) / SUMMARY).read_text())
    except OSError:  # other checks test whether the home can be read at all
        return None


def _check_prefect() -> None:
    if api := get_current_settings().api.url:  # may also come from a Prefect profile
        without_password(api, "PREFECT_API_URL", PREFECT)
        check_prefect(api)


def _check_training(config: NightConfig) -> None:
    for source in config.benchmarks:
        if not benchmarks.configured(source).problems("train"):
            raise InputError(f"benchmarks: {source.label} has no problems to train on; name other levels")
    played = {bool(benchmarks.configured(source).environment) for source in config.benchmarks}
    if len(played) > 1:
        raise InputError("benchmarks: an environment and single questions cannot share a round; give each a night")
    if True in played:
        _check_environments(config)
    if 1 in config.grpo.hints and config.on_policy:
        raise InputError("grpo.hints: a teacher cannot weigh whole solutions; leave out the 1 with on_policy")
    if any(step.kind == "self_play" for step in config.steps):
        proposing_benchmark(config.benchmarks)


def _check_environments(config: NightConfig) -> None:
    """Raise InputError for settings that are meant for single answers, or have no effect on an environment's turns."""
    kinds, single = {step.kind for step in config.steps}, "for single answers; leave them out with an environment"
    if config.on_policy or config.distill.teacher or "self_distill" in kinds:
        raise InputError(f"on_policy, distill.teacher and self_distill are {single}")
    if len({source.name for source in config.benchmarks}) < len(config.benchmarks):
        raise InputError("benchmarks: an environment is listed twice; give one entry all the levels")
    if config.grpo.credit == "td" and config.reward.format:
        raise InputError(
            "reward.format has no effect with grpo.credit: td, which takes the environment's rewards alone"
        )
    if config.grpo.credit != "episode" and config.grpo.scale == "std":
        raise InputError("grpo.scale: std is for whole episodes; leave it out, or set grpo.credit: episode")
    if config.grpo.overlong != "train" or config.reward.length_penalty:
        raise InputError(f"grpo.overlong and reward.length_penalty are {single}")


def _check_quizzes(config: NightConfig) -> None:
    """Raise InputError if quizzes are due between rounds but the exam's target has no training problems for them."""
    if not any(is_quizzed(config, number) for number in range(1, config.rounds + 1)):
        return
    part = quiz_part(config, BETWEEN_ROUNDS)
    try:
        if not benchmarks.configured(part).problems("train"):
            raise InputError(f"{part.name} has no training problems for a quiz")
    except InputError as error:
        raise InputError(f"grpo.quiz_every_rounds: {error}; 0 switches the quizzes off") from error
