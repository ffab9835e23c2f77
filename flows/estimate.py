"""How long a night will still take: by its own rounds so far, and by the other stages of the night before."""

import json
import re
from pathlib import Path
from statistics import fmean, median

from conf.schema import NightConfig
from tasks.incidents import ended_early
from tasks.stage import MANIFEST, run_name

BEFORE_ROUNDS = ("freeze_journal", "fit_reward_model")
STAGES_OF_ONE = ("distill", "self_distill")  # steps of `stages`; of other lessons nobody knows beforehand what there is
SITTERS = ("evaluate/champion", "evaluate/distilled", "evaluate/candidate")
AFTER_ROUNDS = ("evaluate · candidate", "decide")  # a night that is there begins no round any more
ROUND = re.compile(r"round (\d+)\b")


def seconds_left(folder: Path, config: NightConfig, stage: str, elapsed: float, before: Path | None) -> float | None:
    """About how many seconds a night will still take; None where there is nothing to tell it from.

    `stage`: where it is, since `elapsed` seconds. `before`: the last finished night of the same name.
    """
    over = stage in AFTER_ROUNDS
    places = (*BEFORE_ROUNDS, *(() if over else _steps(config)), *SITTERS)
    waiting = {run_name(place): _usual(place, folder, before) for place in places if _seconds(folder / place) is None}
    left = 0 if over or ended_early(folder) else config.rounds - len(_committed_rounds(folder))
    a_round = _round_seconds(folder, before) if left else 0.0
    known = [seconds for seconds in waiting.values() if seconds is not None]
    if a_round is None or len(known) < len(waiting):
        return None
    total = sum(known) + left * a_round + _quizzes_left(config, left) * _quiz_seconds(folder, before)
    own = a_round if ROUND.match(stage) else waiting.get(stage) or 0.0
    return max(0.0, total - min(elapsed, own))


def _steps(config: NightConfig) -> list[str]:
    """Where the steps of `stages` stand that are one stage each."""
    return [step.place for step in config.steps if step.kind in STAGES_OF_ONE or (step.is_block and config.lora)]


def _usual(place: str, folder: Path, before: Path | None) -> float | None:
    """What a stage takes: an exam as long as tonight's longest, anything else as in the night before."""
    tonight = [seconds for sitter in SITTERS if (seconds := _seconds(folder / sitter)) is not None]
    if place in SITTERS and tonight:
        return max(tonight)
    return _seconds(before / place) if before else None


def _round_seconds(folder: Path, before: Path | None) -> float | None:
    """The median round by the clock, of this night, or else of the night before."""
    for night in (folder, before):
        figures = [json.loads((place / "metrics.json").read_text()) for place in _committed_rounds(night)]
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


def _committed_rounds(night: Path | None) -> list[Path]:
    return [file.parent for file in night.glob(f"round-*/checkpoint/{MANIFEST}")] if night else []


def _seconds(stage: Path) -> float | None:
    """How long a committed stage took; of an exam, what it took to sit it, be it on another night."""
    try:
        manifest = json.loads((stage / MANIFEST).read_text())
        return manifest.get("figures", {}).get("seconds_sat", manifest["seconds"])
    except (OSError, ValueError, KeyError):
        return None
