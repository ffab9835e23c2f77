"""How long a night will still take: by its own rounds so far, and by the other stages of the night before."""

import json
import re
from pathlib import Path
from statistics import fmean, median

from conf.schema import NightConfig
from conf.sections.stages import Step
from flows.run.history import round_metrics, seconds_of
from tasks.incidents import ended_early
from tasks.layout import committed_rounds
from tasks.stage import MANIFEST, run_name

SITTERS = ("evaluate/champion", "evaluate/distilled", "evaluate/candidate")
# A night that is there begins no round any more.
AFTER_ROUNDS = ("picks/candidate", "evaluate/candidate", "decide", "vault/serving", "vault/comparison")
# What a night has or has not, by what the day brought: exams between lessons, the vault's, rankings of held-out picks.
DEPENDS = re.compile(r"(picks|vault)/.+|evaluate/step-\d+|lessons/(\w+/)?evaluate")
ASKING = "ask_teacher"  # where that stage stands; the second one of a night at `ask_teacher-2`
ROUND = re.compile(r"round (\d+)\b")


def seconds_left(folder: Path, config: NightConfig, stage: str, elapsed: float, before: Path | None) -> float | None:
    """About how many seconds a night will still take; None where there is nothing to tell it from.

    `stage`: where it is, since `elapsed` seconds. `before`: the last finished night of the same name.
    """
    over = stage in map(run_name, AFTER_ROUNDS)
    waiting = {
        run_name(place): seconds
        for place, seconds in waited_for(folder, config, before, stage).items()
        if not over or place in (*SITTERS, *AFTER_ROUNDS)
    }
    left = 0 if over or ended_early(folder) else config.rounds - len(committed_rounds(folder))
    a_round = _round_seconds(folder, before) if left else 0.0
    known = [seconds for seconds in waiting.values() if seconds is not None]
    if a_round is None or len(known) < len(waiting):
        return None
    total = sum(known) + left * a_round + _quizzes_left(config, left) * _quiz_seconds(folder, before)
    own = a_round if ROUND.match(stage) else waiting.get(stage) or 0.0
    return max(0.0, total - min(elapsed, own))


def places(config: NightConfig) -> tuple[str, ...]:
    """The stages that every night of a configuration has outside its rounds, by their places in its folder.

    What depends on the day is not among them.
    """
    return tuple(place for place in _course(config) if not DEPENDS.fullmatch(place))


def waited_for(folder: Path, config: NightConfig, before: Path | None, stage: str = "") -> dict[str, float | None]:
    """The stages outside the rounds that are still to come, with their usual seconds; None where nobody knows.

    One that depends on the day is among them where the night before had it, and tonight has not gone past it: nothing
    later is committed, nor is it the `stage` where the night is.
    """
    course, found = _course(config), dict[str, float | None]()
    done = {place for place in course if _seconds(folder / place) is not None}
    reached = max((at for at, place in enumerate(course) if place in done or run_name(place) == stage), default=0)
    for at, place in enumerate(course):
        usual = _usual(place, folder, before)
        if place not in done and (not DEPENDS.fullmatch(place) or (at >= reached and usual is not None)):
            found[place] = usual
    return found


def _course(config: NightConfig) -> tuple[str, ...]:
    """The places of all stages outside the rounds, as the night comes to them."""
    first = next((at for at, step in enumerate(config.steps) if step.is_block), len(config.steps))
    learnt = [[*_of_step(step, config), *_exams_after(step, config)] for step in config.steps]
    vault = ["vault/ancestor", "vault/serving", "vault/comparison"] if config.exam.vault else []
    order = [
        "freeze_journal",
        *(place for places in learnt[:first] for place in places),
        "fit_reward_model",
        *vault[:1],
        *SITTERS[:2],
        *(place.replace("evaluate", "picks") for place in SITTERS[:2]),
        *(place for places in learnt[first:] for place in places),
        "picks/candidate",
        SITTERS[2],
        *vault[1:],
    ]
    return tuple(dict.fromkeys(order))


def _of_step(step: Step, config: NightConfig) -> list[str]:
    """The places of a step's own stages. Files are read once a night, with the first lesson that needs them."""
    if step.kind == "distill":
        asked = {
            "import_traces": config.distill.files,
            step.place.replace("distill", ASKING): config.distill.teacher,
        }
        return [*(place for place, source in asked.items() if source and config.distill.steps), step.place]
    if step.kind == "self_distill":
        return [f"{step.place}_answers", step.place]
    if step.kind == "lessons":
        exams = ("/evaluate", "/{}/evaluate") if config.lessons.examine else ()
        each = ("/{}", *exams)  # the first exam is that of the checkpoint before the lessons
        return [f"{step.place}{place.format(channel)}" for channel in config.channels for place in each]
    return [step.place] if config.lora is not None and step.rounds else []


def _exams_after(step: Step, config: NightConfig) -> list[str]:
    """The places of a step's exam; the owner's channels have theirs one by one."""
    return [step.exam] if config.lessons.examine and step.kind != "lessons" else []


def _usual(place: str, folder: Path, before: Path | None) -> float | None:
    """What a stage takes: an exam as long as tonight's longest, anything else as in the night before."""
    tonight = [seconds for sitter in SITTERS if (seconds := _seconds(folder / sitter)) is not None]
    if place in SITTERS and tonight:
        return max(tonight)
    return _seconds(before / place) if before else None


def _round_seconds(folder: Path, before: Path | None) -> float | None:
    """The median round by the clock, of this night, or else of the night before."""
    for night in (folder, before):
        figures = round_metrics(night) if night else []
        if whole := [one["seconds_round"] for one in figures if "seconds_round" in one]:
            return median(whole)
    return None


def _quizzes_left(config: NightConfig, rounds: int) -> int:
    every, done = config.grpo.quiz_every_rounds, config.rounds - rounds
    return config.rounds // every - done // every if every else 0


def _quiz_seconds(folder: Path, before: Path | None) -> float:
    """A quiz as it was so far; before the first one nobody knows, and it is little beside its rounds."""
    for night in (folder, before):
        known = [_seconds(place.parent) for place in night.glob(f"round-*/quiz/{MANIFEST}")] if night else []
        if taken := [seconds for seconds in known if seconds is not None]:
            return fmean(taken)
    return 0.0


def _seconds(stage: Path) -> float | None:
    """How long a committed stage took; None where none is."""
    try:
        return seconds_of(json.loads((stage / MANIFEST).read_text()))
    except (OSError, ValueError, KeyError):
        return None
