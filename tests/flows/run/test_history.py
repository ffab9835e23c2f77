"""What the nights of a home have done, and how long one will still take."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, frozen_yaml, load_night
from conf.storage.home import Home
from flows.run.history import STARTED, last_finished, nights, seconds_left, unfinished_before
from tasks.evaluation.statistics import Accuracy
from tasks.monitoring.incidents import end_early


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    for date in ("2026-11-20", "2026-11-18", "2026-11-19"):
        home.night(date).mkdir(parents=True)
    (home.nights / "notes").mkdir()
    accuracy = {"champion": asdict(Accuracy.of(22, 400)), "candidate": asdict(Accuracy.of(245, 400))}
    summary = {"decision": "promoted", "target": "arithmetic-1-2", "accuracy": accuracy, "alarms": ["an alarm"]}
    (home.night("2026-11-18") / "summary.json").write_text(json.dumps(summary))
    for seconds, place in enumerate(("round-02/sample", "freeze_journal", "round-02/score")):
        folder = home.night("2026-11-20") / place
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text('{"stage": "any", "seconds": 1}')
        os.utime(folder / "manifest.json", (seconds, seconds))
    return home


def test_every_night_with_its_state(home: Home) -> None:
    assert nights(home) == [
        {
            "night": "2026-11-18",
            "state": "promoted",
            "detail": "arithmetic-1-2: 22 of 400 (5.5 %) → 245 of 400 (61.3 %)",
            "alarms": ["an alarm"],
        },
        {"night": "2026-11-19", **interrupted(home, "2026-11-19", "nothing yet")},
        {"night": "2026-11-20", **interrupted(home, "2026-11-20", "round 2 · score")},
    ]
    running = nights(home, "2026-11-20")[-1]
    assert (running["state"], running["detail"]) == ("running", "last committed: round 2 · score")
    raised = [{"name": "no-signal", "severe": False, "sentence": "Hardly any group had a signal.", "round": 2}]
    (home.night("2026-11-20") / "alarms.json").write_text(json.dumps(raised))
    assert nights(home)[-1]["alarms"] == nights(home, "2026-11-20")[-1]["alarms"] == ["Hardly any group had a signal."]


def interrupted(home: Home, date: str, last: str) -> dict[str, Any]:
    again = f"nightschool night --config {home.night(date)}/config.yaml --date {date}"
    return {"state": "interrupted", "detail": f"last committed: {last}; resume with: {again}", "alarms": []}


def test_the_same_command_resumes_the_night_before(home: Home) -> None:
    """If it was interrupted, is the newest, and has the same configuration."""
    config, newest = load_night(STARTER), home.night("2026-11-20")
    assert unfinished_before(home, "2026-11-21", config) is None  # nothing is frozen: it never began
    (newest / "config.yaml").write_text(frozen_yaml(config))
    assert unfinished_before(home, "2026-11-21", config) == "2026-11-20"
    assert unfinished_before(home, "2026-11-22", config) is None
    assert unfinished_before(home, "2026-11-20", config) is None
    assert unfinished_before(home, "2026-11-21", load_night(STARTER, ["seed=9"])) is None
    (newest / "summary.json").write_text("{}")
    assert unfinished_before(home, "2026-11-21", config) is None


def test_a_night_that_was_finished_after_a_later_one_had_begun_changes_nothing_for_it(home: Home) -> None:
    for date in ("2026-11-18", "2026-11-19"):
        (home.night(date) / "config.yaml").write_text(frozen_yaml(load_night(STARTER)))
    summary = home.night("2026-11-18") / "summary.json"
    assert last_finished(home.nights, "starter", "2026-11-19") == summary.parent
    (home.night("2026-11-19") / STARTED).write_text(json.dumps({"started": summary.stat().st_mtime - 60}))
    assert last_finished(home.nights, "starter", "2026-11-19") is None
    assert last_finished(home.nights, "starter", "2026-11-20") == summary.parent
    summary.write_text(json.dumps({"finished": summary.stat().st_mtime - 120}))  # the home was copied since
    assert last_finished(home.nights, "starter", "2026-11-19") == summary.parent


def test_the_last_finished_night_of_a_name(home: Home) -> None:
    assert last_finished(home.nights, "starter") is None
    for date in ("2026-11-18", "2026-11-20"):  # the second is not finished
        (home.night(date) / "config.yaml").write_text(frozen_yaml(load_night(STARTER)))
    assert last_finished(home.nights, "starter") == home.night("2026-11-18")
    assert last_finished(home.nights, "nightly") is None


# --- how long a night will still take

DATE, BEFORE = "2026-11-20", "2026-11-19"
LESSONS = {"lessons/corrections": 2.0, "lessons/words": 1.0, "lessons/feedback": 1.0}
OTHERS = {"freeze_journal": 1.0, "distill": 30.0, "fit_reward_model": 1.0} | LESSONS
EXAMS = dict.fromkeys(("exam/look-1", "evaluate/champion", "evaluate/candidate"), 20.0)
DECIDE = 1.0
AFTER = 60 + DECIDE
WHOLE = 36 + 6 * 10 + AFTER
SIX_ROUNDS = load_night(STARTER, ["grpo.rounds=6"])


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


FEW = {"freeze_journal": 1.0, "fit_reward_model": 1.0}  # tonight has passed without the stages between them


@pytest.mark.parametrize(
    ("stages", "rounds", "since", "left"),
    [
        ({}, [], 0.0, WHOLE),  # at the start all is as the night before
        ({"freeze_journal": 1.0}, [], 12.0, WHOLE - 1 - 12),
        (FEW, [], 0.0, WHOLE - sum(OTHERS.values()) + sum(LESSONS.values())),
        (OTHERS, [30.0, None, 6.0, 8.0], 0.0, 2 * 8 + AFTER),  # its own rounds count for more than last night's
        (OTHERS, [30.0, None, 6.0, 8.0], 3.0, 2 * 8 + AFTER - 3),
        (OTHERS, [30.0, None, 6.0, 8.0], 999.0, 0),
    ],
)
def test_what_is_left_is_told_by_last_night_and_by_tonights_rounds(
    tonight: Path, before: Path, stages: dict[str, float], rounds: list[float | None], since: float, left: float
) -> None:
    commit(tonight, stages, rounds)
    assert seconds_left(tonight, SIX_ROUNDS, since, before) == left
    if rounds:
        assert seconds_left(tonight, SIX_ROUNDS, since, None) is None  # the first night has nothing to tell it from


def test_a_night_that_ended_its_rounds_early_begins_no_more(tonight: Path, before: Path) -> None:
    commit(tonight, OTHERS, [8.0])
    assert seconds_left(tonight, SIX_ROUNDS, 0.0, before) == 5 * 8 + AFTER
    end_early(tonight, 1, "a severe alarm", 1)
    assert seconds_left(tonight, SIX_ROUNDS, 0.0, before) == AFTER
