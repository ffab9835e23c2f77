"""Raises the target's difficulty: once the champion masters its levels, training and exam add the next level."""

import json
from pathlib import Path
from typing import Any

from conf.load import config_of
from conf.schema import NightConfig
from conf.sections.benchmark import BenchmarkConfig, levels_of
from conf.storage.home import SUMMARY, Home
from flows.run.history import last_finished

WEAK = 0.5  # share of a level's problems; below it, worked solutions teach more than rewards


def with_next_level(config: NightConfig, home: Home, date: str) -> NightConfig:
    """Return the configuration with the target extended to the levels that nights before `date` have reached.

    These are the levels of the last finished night. The next level is added if the model that served after that night
    was accurate enough: the lower bound of its 95 % interval on the target exceeds `exam.next_level_at`. If the
    configuration already has these levels, it stays the same, so that a night can resume with its frozen configuration.
    """
    at, target, last = config.exam.next_level_at, config.exam.target, last_finished(home.nights, config.name, date)
    if at is None or target.levels is None or last is None:
        return config
    reached = {*target.levels, *_levels_of(last, config)}
    further = [level for level in _offered(config) if level > max(reached)]
    if reached == {*_levels_of(last, config)} and further:
        summary = json.loads((last / SUMMARY).read_text())
        if summary["accuracy"][_served(summary)]["low"] > at:
            reached.add(further[0])
    return _with_levels(config, tuple(sorted(reached)))


def weak_levels(config: NightConfig, home: Home, date: str) -> tuple[str, ...]:
    """Return the levels whose solutions a trained student is taught: those of tonight's target that it hardly solves.

    These are new to the target, or the model that served after the last finished night before `date` solved less than
    `WEAK` of them in its exam. In a night with a new level, all further levels count as well. Empty without
    `exam.next_level_at` or such an exam.
    """
    last, target = last_finished(home.nights, config.name, date), config.exam.target.levels or ()
    before = _levels_of(last, config) if last and config.exam.next_level_at is not None else ()
    if last is None or not before or not (solved := _solved(last)):
        return ()
    asked = target if {*target} <= {*before} else _offered(config)
    return tuple(level for level in asked if solved.get(level, 0.0) < WEAK)


def _offered(config: NightConfig) -> list[str]:
    """Return all levels that the target may reach: if wider levels are practised, only those."""
    target, levels = config.exam.target, levels_of(config.exam.target.benchmark)
    wider = [entry.levels for entry in config.benchmarks if entry.name == target.benchmark and entry.levels]
    if practised := [each for each in wider if {*each} > {*(target.levels or ())}]:
        return [level for level in levels if any(level in each for each in practised)]
    return [*levels]


def _solved(night: Path) -> dict[str, float]:
    """Return, by level, the share of the target that the model that served after a night solved in its exam."""
    from tasks.evaluation.metrics import exam_figures  # takes a while to import

    summary = json.loads((night / SUMMARY).read_text())
    exam = night / "evaluate" / _served(summary)
    figures = exam_figures(exam).get(summary["target"]) if exam.exists() else None
    return {level: share.accuracy for level, share in figures.by_level.items()} if figures else {}


def _served(summary: dict[str, Any]) -> str:
    return "candidate" if summary["decision"] == "promoted" else "champion"


def _levels_of(night: Path, config: NightConfig) -> tuple[str, ...]:
    """Return the target's levels in an earlier night. Empty if that night's target was another benchmark."""
    known = config_of(night)
    if known is None or known.exam.target.benchmark != config.exam.target.benchmark:
        return ()
    return known.exam.target.levels or ()


def _with_levels(config: NightConfig, levels: tuple[str, ...]) -> NightConfig:
    """Return the configuration with `levels` for the target and for the training benchmarks that had its levels."""
    target = config.exam.target

    def moved(entry: BenchmarkConfig) -> BenchmarkConfig:
        same = entry.name == target.benchmark and entry.levels == target.levels
        return entry.model_copy(update={"levels": levels}) if same else entry

    exam = config.exam.model_copy(update={"target": target.model_copy(update={"levels": levels})})
    return config.model_copy(update={"exam": exam, "benchmarks": tuple(map(moved, config.benchmarks))})
