"""Whether an exam can show what it is to show: checked before anybody sits it."""

from collections.abc import Mapping

from conf.home import InputError
from conf.schema import NightConfig
from tasks.decision import smallest_guard
from tasks.evaluate import exam_problems


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
