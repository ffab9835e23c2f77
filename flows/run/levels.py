"""Raises the target's difficulty: once the champion masters its levels, training and exam add the next level."""

import json
from pathlib import Path

from conf.load import config_of
from conf.schema import NightConfig
from conf.sections.benchmark import BenchmarkConfig, levels_of
from conf.storage.home import SUMMARY, Home, InputError
from flows.run.history import finished, last_finished
from rewards.arithmetic import Arithmetic


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
    further = _further(config, max(reached))
    if reached == {*_levels_of(last, config)} and further:
        summary = json.loads((last / SUMMARY).read_text())
        served = "candidate" if summary["decision"] == "promoted" else "champion"
        if summary["accuracy"][served]["low"] > at:
            reached.add(further[0])
    return _with_levels(config, tuple(sorted(reached)))


def joined_levels(config: NightConfig, home: Home, date: str) -> tuple[str, ...]:
    """Return the levels of Arithmetic that have joined since the target's first night, and all that may still follow.

    Empty if none has joined by the night of `date`, or if the target is another benchmark.
    """
    target = config.exam.target
    if config.exam.next_level_at is None or target.benchmark != Arithmetic.name:
        return ()
    oldest_first = finished(home.nights, config.name, date, newest_first=False)
    first: tuple[str, ...] = next(filter(None, (_levels_of(night, config) for night in oldest_first)), ())
    joined = [level for level in target.levels or () if first and level not in first]
    return (*joined, *_further(config, joined[-1])) if joined else ()


def _further(config: NightConfig, reached: str) -> list[str]:
    """Return the levels after `reached` that the target may have later: if wider levels are practised, only those."""
    target = config.exam.target
    further = [level for level in levels_of(target.benchmark) if level > reached]
    wider = [entry.levels for entry in config.benchmarks if entry.name == target.benchmark and entry.levels]
    if practised := [levels for levels in wider if {*levels} > {*(target.levels or ())}]:
        return [level for level in further if any(level in levels for levels in practised)]
    return further


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

    wider = target.model_copy(update={"levels": levels})
    if wider.name in (guard.name for guard in config.exam.guards):
        raise InputError(f"exam.guards: the target has reached the levels of {wider.name}; remove that guard")
    exam = config.exam.model_copy(update={"target": wider})
    return config.model_copy(update={"exam": exam, "benchmarks": tuple(map(moved, config.benchmarks))})
