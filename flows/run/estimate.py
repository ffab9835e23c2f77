"""How long a night will still take: by its own stages and rounds so far, and by those of the night before."""

import json
import re
from pathlib import Path
from statistics import fmean, median

from conf.schema import NightConfig
from flows.run.history import round_metrics, seconds_of
from tasks.incidents import ended_early
from tasks.layout import MANIFEST, is_committed, is_round, run_name
from tasks.plan import MODELS_EXAMINED, plan_night

EXAMS = tuple(f"evaluate/{model}" for model in MODELS_EXAMINED)
ROUND = re.compile(r"round (\d+)\b")


def seconds_left(folder: Path, config: NightConfig, stage: str, elapsed: float, before: Path | None) -> float | None:
    """Return about how many seconds a night will still take; None where there is nothing to tell it from.

    `stage`: the one that runs, as people read it (`round 3 · sample`), for `elapsed` seconds so far. `before`: the last
    finished night of the same name.
    """
    waiting = stages_left(folder, config, before, stage)
    current = next((seconds for path, seconds in waiting.items() if _is_at(stage, path)), None)
    known = [seconds for seconds in waiting.values() if seconds is not None]
    if len(known) < len(waiting):
        return None
    return max(0.0, sum(known) - min(elapsed, current or 0.0))


def stages_left(folder: Path, config: NightConfig, before: Path | None, stage: str = "") -> dict[str, float | None]:
    """Return the stages and rounds that are still to come, by path, with their usual seconds; None where nobody knows.

    An optional stage is among them where the night before had it. Nothing comes any more that the plan has before the
    stage that runs or the last one that is committed. A night on its first start imports its student too, which nobody
    could foresee the seconds of.
    """
    timeline = [planned for planned in plan_night(config).timeline if not planned.path.startswith("enroll")]
    done = [_is_done(folder, planned.path) for planned in timeline]
    reached = max((at for at, planned in enumerate(timeline) if done[at] or _is_at(stage, planned.path)), default=0)
    early = ended_early(folder) is not None
    waiting: dict[str, float | None] = {}
    for at, planned in enumerate(timeline[reached:], reached):
        if done[at] or (early and is_round(planned.path)):
            continue
        seconds = _usual_seconds(planned.path, config, folder, before)
        if seconds is not None or not planned.optional:
            waiting[planned.path] = seconds
    return waiting


def _is_done(folder: Path, path: str) -> bool:
    return is_committed(folder / path) if is_round(path) else (folder / path / MANIFEST).exists()


def _is_at(stage: str, path: str) -> bool:
    """Whether the stage that runs is this one, or a part of this round."""
    return stage == run_name(path) or (is_round(path) and stage.startswith(f"{run_name(path)} ·"))


def _usual_seconds(path: str, config: NightConfig, folder: Path, before: Path | None) -> float | None:
    """What a stage takes: an exam as long as tonight's longest, a round as the median, else as in the night before."""
    if is_round(path):
        return _round_seconds(path, config, folder, before)
    tonight = [seconds for exam in EXAMS if (seconds := _seconds(folder / exam)) is not None]
    if path in EXAMS and tonight:
        return max(tonight)
    return _seconds(before / path) if before else None


def _round_seconds(path: str, config: NightConfig, folder: Path, before: Path | None) -> float | None:
    """The median round by the clock, of this night, or else of the night before; and its quiz, if one is due."""
    every, number = config.grpo.quiz_every_rounds, int(path.removeprefix("round-"))
    quiz = _quiz_seconds(folder, before) if every and number % every == 0 else 0.0
    for night in (folder, before):
        figures = round_metrics(night) if night else []
        if whole := [one["seconds_round"] for one in figures if "seconds_round" in one]:
            return median(whole) + quiz
    return None


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
