"""The plan of a night: its stages in their order, and what each one takes from those before it.

The night runs by it and Prefect draws it (`flows/run/context.py`); the progress bar reads it too.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from conf.schema import NightConfig
from conf.sections.benchmark import ENVIRONMENTS
from conf.sections.stages import Step
from tasks.layout import TURNS_OF_A_PART, is_round, ranking_path, round_path

MOST_LOOKS = 9  # of an exam: 25,600 problems

T = TypeVar("T")


@dataclass(frozen=True)
class Planned:
    """One stage of the plan, or a nested flow with `stages` of its own.

    `path`: its folder, relative to the night's or to the nested flow's. `inputs`: the paths of the stages beside it
    whose results it takes. `optional`: whether there is one depends on the day, the hours or what was found on the way.
    `commits`: whether it leaves a committed folder, whose manifest says how long it took.
    """

    path: str
    inputs: tuple[str, ...] = ()
    optional: bool = False
    commits: bool = True
    stages: tuple["Planned", ...] = ()


class Plan:
    """The stages of one night, or of a nested flow, in their order."""

    def __init__(self, stages: Sequence[Planned]) -> None:
        self.stages = tuple(stages)

    @cached_property
    def timeline(self) -> tuple[Planned, ...]:
        """The stages that commit a folder, in their order: each round counts as one, nested lessons one by one."""
        flat: list[Planned] = []
        for stage in self.stages:
            if stage.stages and not is_round(stage.path):
                flat += [replace(nested, path=f"{stage.path}/{nested.path}") for nested in stage.stages]
            elif stage.commits:
                flat.append(stage)
        return tuple(flat)

    @cached_property
    def nested(self) -> dict[str, "Plan"]:
        """The plans of the nested flows, by path."""
        return {stage.path: Plan(stage.stages) for stage in self.stages if stage.stages}

    def upstream(self, path: str, results: Mapping[str, T]) -> list[T]:
        """Return the results that a stage takes: those of its inputs, or of their inputs where one of them did not run.

        Raises KeyError for a path that the plan does not have.
        """
        by_path = {stage.path: stage for stage in self.stages}
        found: dict[str, T] = {}

        def visit(inputs: Iterable[str]) -> None:
            for name in inputs:
                if name in results:
                    found[name] = results[name]
                else:
                    visit(by_path[name].inputs)

        visit(by_path[path].inputs)
        return list(found.values())


REWARD_MODEL = (
    Planned("fit_reward_model", ("freeze_journal",)),
    Planned("picks/champion", ("fit_reward_model",), optional=True),
)
DAY_COPY = (
    Planned("replay_day", ("freeze_journal",), optional=True),
    Planned("merge_day", ("replay_day",), optional=True),
    Planned("quiz/day", ("merge_day",), optional=True),
    Planned("picks/day", ("fit_reward_model", "merge_day"), optional=True),
)


def plan_night(config: NightConfig) -> Plan:
    """Return the plan of a configuration's night.

    The champion is there before the night begins, or `enroll` imports it. What takes nothing but the champion follows
    `freeze_journal`, the night's first step.
    """
    steps = config.steps
    first = next((index for index, step in enumerate(steps) if step.is_block), len(steps))
    stages = [Planned("enroll", optional=True), Planned("freeze_journal", ("enroll",))]
    if config.on_policy is not None:
        stages.append(Planned("enroll_teacher", ("freeze_journal",), optional=True))
    policy = "freeze_journal"  # the stage that the newest checkpoint comes from
    stages.append(Planned("quiz/start", (policy,), optional=True))
    if config.start_from == "day":
        policy = "choose_start"
        compared = ("quiz/start", "quiz/day", "picks/champion", "picks/day")
        stages += [*REWARD_MODEL, *DAY_COPY, Planned(policy, compared)]
    for step in steps[:first]:
        policy = _add_lesson(stages, config, step, policy)
    if config.start_from != "day":
        stages += REWARD_MODEL
    stages += [
        Planned("owner_prompts", ("fit_reward_model",), optional=True),
        *([Planned("examine_judge", ("fit_reward_model",), optional=True)] if config.judge else []),
    ]
    for step in steps[first:]:
        add = _add_block if step.is_block else _add_lesson
        policy = add(stages, config, step, policy)
    stages.append(Planned("picks/candidate", ("fit_reward_model", policy), optional=True))
    before = policy
    for number in range(1, MOST_LOOKS + 1):
        stages.append(Planned(f"exam/look-{number}", (before,), optional=number > 1))
        before = f"exam/look-{number}"
    whole = ("evaluate/whole-distilled", "evaluate/whole-candidate") if config.exam.after_lessons else ()
    exams = ("evaluate/champion", "evaluate/candidate", "evaluate/first", *whole)
    stages += [Planned(path, (before,), optional=path == "evaluate/first") for path in exams]
    stages += [
        Planned("decide", (*exams, "picks/champion", "picks/candidate")),
        Planned("promote", ("decide",), commits=False),
        Planned("push", ("promote",), optional=True, commits=False),
    ]
    taken = {name for stage in stages for name in stage.inputs}
    last = tuple(stage.path for stage in stages if stage.path not in taken)
    # last: the night is finished by then, and its lessons' checkpoints are needed no more
    prune = Planned("prune", ("report",), commits=False)
    return Plan([*stages, Planned("report", last, commits=False), prune])


def plan_round(config: NightConfig) -> Plan:
    """Return the plan of one round: from prompts to advantages, again for each refill, then the update."""
    asks = any(step.kind == "self_play" for step in config.steps)
    stages = [Planned("ask", optional=True), Planned("propose", ("ask",), optional=True)] if asks else []
    before = ("propose",) if asks else ()
    for refill in range(max(config.grpo.refills, asks) + 1):
        folder = f"refill-{refill}/" if refill else ""
        passed = [
            Planned(f"{folder}select_prompts", before),
            *(played := _plan_episodes(config, folder)),
            Planned(f"{folder}sample", (played[-1].path if played else f"{folder}select_prompts",)),
            *(judged := _plan_judging(config, folder)),
            Planned(f"{folder}score", (f"{folder}sample", *(stage.path for stage in judged))),
            Planned(f"{folder}credit", (f"{folder}score",)),
        ]
        stages += [replace(stage, optional=True) for stage in passed] if refill or asks else passed
        before = (f"{folder}credit",)
    if asks:
        stages.append(Planned("credit_questions", before, optional=True))
        before = ("credit_questions",)
    stages += [
        Planned("update", before, commits=False),
        Planned("checkpoint", ("update",)),
        Planned("quiz", ("update",), optional=True),
        Planned("rank_picks", ("checkpoint",), optional=True),
    ]
    return Plan(stages)


def _plan_judging(config: NightConfig, folder: str) -> tuple[Planned, ...]:
    """Return the stages that rate what has no verifier: the reward model's and, where there is one, the judge's."""
    names = ("score_by_reward_model", "rank_by_judge") if config.judge else ("score_by_reward_model",)
    return tuple(Planned(f"{folder}{name}", (f"{folder}sample",), optional=True) for name in names)


def _plan_episodes(config: NightConfig, folder: str) -> tuple[Planned, ...]:
    """Return the parts in which a round's episodes may be played; none without an environment.

    A class of the user's may be one. A turn takes at least eight tokens of the context.
    """
    may_play = any(entry.name in ENVIRONMENTS or ":" in entry.name for entry in config.benchmarks)
    most = config.engine.max_model_len // (8 * TURNS_OF_A_PART) + 1 if may_play else 0
    before = [f"{folder}select_prompts", *(f"{folder}play-{part}" for part in range(1, most + 1))]
    return tuple(Planned(after, (earlier,), optional=True) for earlier, after in itertools.pairwise(before))


def _add_lesson(stages: list[Planned], config: NightConfig, step: Step, policy: str) -> str:
    """Add a lesson's stages, its check and the exam after it. Returns the path of the stage that it ends with."""
    sources = ["freeze_journal"]
    if step.kind == "distill" and config.distill.steps:
        if config.distill.files:
            sources.append("import_traces")
            if all(stage.path != "import_traces" for stage in stages):
                stages.append(Planned("import_traces", ("freeze_journal",)))
        if config.distill.reference_solutions:
            sources.append("reference_solutions")
            if all(stage.path != "reference_solutions" for stage in stages):
                stages.append(Planned("reference_solutions", ("freeze_journal",)))
        if config.distill.teacher is not None:
            sources.append(teacher_path(step.path))
            stages.append(Planned(teacher_path(step.path), (policy,)))
        if config.distill.rehearsal:
            inputs = tuple(dict.fromkeys([*sources, policy]))
            stages.append(Planned(rehearsal_path(step.path), inputs, optional=True))
            sources.append(rehearsal_path(step.path))
    elif step.kind == "self_distill":
        sources = [f"{step.path}_answers"]
        stages.append(Planned(sources[0], (policy,)))
    nested = _plan_channels(config) if step.kind == "lessons" else ()
    stages.append(Planned(step.path, tuple(dict.fromkeys([*sources, policy])), stages=nested))
    last = step.path
    if config.lessons.quiz_problems:
        last = f"{check_path(step.path)}/verdict"
        quizzes = (f"quiz/{step.path}-before", f"quiz/{step.path}")
        stages.append(Planned(quizzes[0], (policy,), optional=True))
        stages.append(Planned(quizzes[1], (step.path,), optional=True))
        stages.append(Planned(last, ("quiz/start", *quizzes), optional=True))
    return last


def _add_block(stages: list[Planned], config: NightConfig, step: Step, policy: str) -> str:
    """Add a block's rounds and, where it trains adapters, their merge. Returns the path of the last stage."""
    if not step.rounds:
        return policy
    round_stages = plan_round(config).stages
    begin = step.rounds.start
    ranking = ranking_path(begin, begin - 1)
    stages.append(Planned(ranking, ("fit_reward_model", policy), optional=True))
    for number in step.rounds:
        inputs: tuple[str, ...] = (policy,)
        if number == begin:
            inputs = (ranking, "owner_prompts", "fit_reward_model", policy)
        if number == begin and step.kind == "on_policy":
            inputs = ("enroll_teacher", policy)
        policy = round_path(number)
        stages.append(Planned(policy, inputs, stages=round_stages))
    if config.merges:
        stages.append(Planned(step.path, (policy,)))
        policy = step.path
    if config.lessons.quiz_problems:
        stages.append(Planned(f"quiz/{quiz_of_block(step)}", (policy,), optional=True))
    return policy


def _plan_channels(config: NightConfig) -> tuple[Planned, ...]:
    """The owner's channels, one after the other."""
    stages: list[Planned] = []
    for channel in config.channels:
        stages.append(Planned(channel, (stages[-1].path,) if stages else ()))
    return tuple(stages)


def quiz_of_block(step: Step) -> str:
    """Return the name of the quiz after a block of rounds: `rounds`, `rounds-2`."""
    return step.path.replace("merge", "rounds")


def check_path(lesson: str) -> str:
    """Return the path of a lesson's check: whether it made the student worse."""
    return f"{lesson}_check"


def rehearsal_path(lesson: str) -> str:
    """Return the path of a lesson's rehearsal: `rehearsal-2` for `distill-2`."""
    return lesson.replace("distill", "rehearsal")


def teacher_path(lesson: str) -> str:
    """Return the path of the stage that asks a teacher for a lesson: `ask_teacher-2` for `distill-2`."""
    return lesson.replace("distill", "ask_teacher")
