"""How long a night will still take, from the files of this night and of the one before."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from flows.run.history import seconds_left
from tasks.monitoring.incidents import end_early

DATE, BEFORE = "2026-11-20", "2026-11-19"
LESSONS = {"lessons/corrections": 2.0, "lessons/words": 1.0, "lessons/feedback": 1.0}
OTHERS = {"freeze_journal": 1.0, "distill": 30.0, "fit_reward_model": 1.0} | LESSONS
EXAMS = dict.fromkeys(("exam/look-1", "evaluate/champion", "evaluate/candidate"), 20.0)
DECIDE = 1.0
AFTER = 60 + DECIDE
WHOLE = 36 + 6 * 10 + AFTER


def config() -> NightConfig:
    return load_night(STARTER, ["grpo.rounds=6"])


def commit(folder: Path, stages: dict[str, float], rounds: Sequence[float | None] = ()) -> None:
    """Write stages with their seconds; rounds with theirs by the clock (None: an interruption cut it in two)."""
    for path, seconds in stages.items():
        (folder / path).mkdir(parents=True)
        (folder / path / "manifest.json").write_text(json.dumps({"seconds": seconds}))
    for number, seconds in enumerate(rounds, 1):
        path = folder / f"round-{number:02d}"
        commit(path, {"checkpoint": 3.0})
        figures = {} if seconds is None else {"seconds_round": seconds}
        (path / "checkpoint" / "metrics.json").write_text(json.dumps(figures))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The night before: rounds of 10 s, exams of 20 s, all stages in the order of their commits."""
    stages = OTHERS | EXAMS | {"decide": DECIDE}
    commit(tmp_path / BEFORE, stages, [10.0] * 4)
    for at, path in enumerate(stages):
        os.utime(tmp_path / BEFORE / path / "manifest.json", (at, at))
    return tmp_path / BEFORE


@pytest.fixture
def tonight(tmp_path: Path) -> Path:
    (tmp_path / DATE).mkdir()
    return tmp_path / DATE


def test_at_the_start_all_is_as_the_night_before(tonight: Path, before: Path) -> None:
    assert seconds_left(tonight, config(), 0.0, before) == WHOLE
    commit(tonight, {"freeze_journal": 1.0})
    assert seconds_left(tonight, config(), 12.0, before) == WHOLE - 1 - 12


def test_its_own_rounds_count_for_more_than_last_nights(tonight: Path, before: Path) -> None:
    commit(tonight, OTHERS, [30.0, None, 6.0, 8.0])
    left = 2 * 8 + AFTER
    assert seconds_left(tonight, config(), 0.0, before) == left
    assert seconds_left(tonight, config(), 3.0, before) == left - 3
    assert seconds_left(tonight, config(), 999.0, before) == 0


def test_a_night_that_ended_its_rounds_early_begins_no_more(tonight: Path, before: Path) -> None:
    commit(tonight, OTHERS, [8.0])
    assert seconds_left(tonight, config(), 0.0, before) == 5 * 8 + AFTER
    end_early(tonight, 1, "a severe alarm", 1)
    assert seconds_left(tonight, config(), 0.0, before) == AFTER


def test_a_stage_that_tonight_has_passed_without_is_not_waited_for(tonight: Path, before: Path) -> None:
    commit(tonight, {"freeze_journal": 1.0, "fit_reward_model": 1.0})
    assert seconds_left(tonight, config(), 0.0, before) == WHOLE - sum(OTHERS.values()) + sum(LESSONS.values())


def test_the_first_night_has_nothing_to_tell_it_from(tonight: Path) -> None:
    commit(tonight, OTHERS, [8.0, 9.0])
    assert seconds_left(tonight, config(), 0.0, None) is None
