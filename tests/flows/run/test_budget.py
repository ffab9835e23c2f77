"""A night's hours, and whether another round fits, worked out by hand."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, frozen_yaml, load_night
from conf.storage.home import Home
from flows.run.budget import Allowance, Hours, end_of_asking, expected_seconds, past_rounds
from flows.run.context import Night
from flows.training.reward_model import slowest_ranking
from tasks.workers import HoursOverError

NOW = 1_795_217_400.0  # 2026-11-21 00:30 in Berlin


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of day in seconds, which a test sets."""
    shown = [NOW]
    monkeypatch.setattr(time, "time", lambda: shown[0])
    return shown


def hours(*settings: str) -> Hours:
    return Hours.of(load_night(STARTER, ["budget_minutes=null", *settings]), "2026-11-20")


@pytest.mark.usefixtures("clock")
def test_the_earlier_end_counts() -> None:
    assert hours().end == float("inf")
    assert hours("budget_minutes=90") == Hours(NOW + 5400, "budget_minutes (90)")
    berlin = ["deadline=06:30", "deadline_time_zone=Europe/Berlin"]
    assert hours(*berlin) == Hours(NOW + 6 * 3600, "the deadline (06:30)")
    assert hours(*berlin, "budget_minutes=90").because == "budget_minutes (90)"
    assert hours(*berlin, "budget_minutes=480").because == "the deadline (06:30)"


@pytest.mark.usefixtures("clock")
def test_the_budget_counts_from_when_the_night_began(tmp_path: Path) -> None:
    night = Night(Home(tmp_path), "2026-11-20", load_night(STARTER, ["budget_minutes=90"]), NOW - 3600)
    assert night.hours == Hours(NOW + 1800, "budget_minutes (90)")


def test_the_next_round_is_as_slow_as_the_slower_of_median_and_last() -> None:
    rounds: list[list[float]] = [[], [30], [90, 30, 30], [90, 30, 30, 50], [60, 50, 10]]
    assert [expected_seconds(seconds) for seconds in rounds] == [0, 30, 30, 50, 50]


def allowance(tmp_path: Path, minutes: float, *settings: str, exam: float = 100.0) -> Allowance:
    config = load_night(STARTER, [f"budget_minutes={minutes}", *settings])
    return Allowance(Hours.of(config, "2026-11-20"), config, tmp_path, exam)


def fits(allowed: Allowance, quizzed: bool = False) -> bool:
    try:
        allowed.require(4, quizzed)
    except HoursOverError:
        return False
    return True


def test_a_round_begins_only_if_the_exam_still_fits(tmp_path: Path, clock: list[float]) -> None:
    """1.25 × 100 s of exam and 60 s for the rest are 185 s; the round takes 40."""
    allowed = allowance(tmp_path, 10)
    allowed.rounds = [90.0, 40.0, 40.0]
    assert allowed.after == 185
    clock[0] += 600 - 225
    assert fits(allowed)
    clock[0] += 1
    with pytest.raises(HoursOverError) as caught:
        allowed.require(4, quizzed=False)
    assert str(caught.value) == (
        "round 4 was not begun: it would take about 0.7 minutes and what comes after the rounds 3.1 minutes, "
        "but budget_minutes (10) left 3.7 minutes"
    )


def test_its_quiz_has_to_fit_too(tmp_path: Path, clock: list[float]) -> None:
    allowed = allowance(tmp_path, 10)
    allowed.rounds = [40.0]
    clock[0] += 600 - 300
    assert fits(allowed)
    assert not fits(allowed, quizzed=True)  # the first may take as long as the exam, 100 s
    allowed.quizzes = [20.0, 30.0]
    assert fits(allowed, quizzed=True)
    clock[0] += 46
    assert not fits(allowed, quizzed=True)


def test_merge_and_ranking_come_after_the_rounds_too(tmp_path: Path) -> None:
    assert allowance(tmp_path, 10, "lora={}").after == 245
    for model, seconds in {"champion": 8.0, "distilled": 4.0}.items():
        (tmp_path / "picks" / model).mkdir(parents=True)
        (tmp_path / "picks" / model / "manifest.json").write_text(json.dumps({"seconds": seconds}))
    assert slowest_ranking(tmp_path) == 8
    assert slowest_ranking(tmp_path / "nowhere") == 0
    config = load_night(STARTER, ["budget_minutes=10"])
    assert Allowance(Hours.of(config, "2026-11-20"), config, tmp_path, 100.0, 8.0).after == 195


def test_without_hours_everything_fits(tmp_path: Path, clock: list[float]) -> None:
    allowed = Allowance(Hours(), load_night(STARTER), tmp_path, 100.0)
    allowed.rounds = [1e9]
    clock[0] += 1e9
    assert fits(allowed)


def write_past_night(nights: Path, date: str, name: str, seconds: list[float | None], finished: bool = True) -> None:
    folder = nights / date
    folder.mkdir()
    for number, value in enumerate(seconds, 1):
        checkpoint = folder / f"round-{number:02d}" / "checkpoint"
        checkpoint.mkdir(parents=True)
        figures: dict[str, Any] = {"reward": 0.5} if value is None else {"seconds_round": value}
        (checkpoint / "metrics.json").write_text(json.dumps(figures))
        (checkpoint / "manifest.json").write_text("{}")
    (folder / "config.yaml").write_text(frozen_yaml(load_night(STARTER, [f"name={name}"])))
    if finished:
        (folder / "summary.json").write_text("{}")


def test_the_first_round_goes_by_the_newest_finished_night_of_its_name(tmp_path: Path, clock: list[float]) -> None:
    assert past_rounds(tmp_path, "starter") == []
    allowed = allowance(tmp_path, 10)
    clock[0] += 600 - 185
    assert fits(allowed)  # nothing is known of it
    clock[0] += 1
    assert not fits(allowed)
    write_past_night(tmp_path, "2026-11-17", "starter", [20.0, None, 40.0])
    write_past_night(tmp_path, "2026-11-18", "starter", [])
    write_past_night(tmp_path, "2026-11-19", "other", [90.0])
    write_past_night(tmp_path, "2026-11-20", "starter", [70.0], finished=False)
    (tmp_path / "2026-11-19" / "config.yaml").write_text("of: another version")
    assert past_rounds(tmp_path, "starter") == [20.0, 40.0]
    clock[0] = NOW + 600 - 185 - 39
    assert not fits(allowed)
    clock[0] -= 2
    assert fits(allowed)


def test_all_but_rounds_may_end_half_an_hour_late(tmp_path: Path, clock: list[float]) -> None:
    night = Night(Home(tmp_path), "2026-11-20", load_night(STARTER, ["budget_minutes=60"]))
    assert (night.engine.until, night.trainer.until) == (NOW + 5400, NOW + 5400)
    night.limit_workers(before_end=185)
    assert (night.engine.until, night.trainer.until) == (NOW + 3415, NOW + 3415)
    endless = Night(Home(tmp_path), "2026-11-20", load_night(STARTER, ["budget_minutes=null"]))
    assert endless.engine.until == float("inf")


TEACHER = "distill.teacher={base_url: 'http://127.0.0.1:8000/v1', model: wise}"


def test_asking_a_teacher_leaves_time_for_all_other_stages(tmp_path: Path, clock: list[float]) -> None:
    """Of 600 s, 60 are for the rest; the night before needed 131 s without its rounds and its teacher."""
    config = load_night(STARTER, ["budget_minutes=10", "stages=[distill, grpo]", TEACHER])
    hours, tonight, before = Hours.of(config, "2026-11-20"), tmp_path / "2026-11-20", tmp_path / "2026-11-19"
    assert end_of_asking(hours, config, tonight, None) == NOW + 540 - 270  # nothing is known: half of what is left
    clock[0] += 40
    assert end_of_asking(hours, config, tonight, None) == NOW + 540 - 250
    exams = {f"evaluate/{model}": 20.0 for model in ("champion", "distilled", "candidate")}
    taken = {"freeze_journal": 1.0, "distill": 30.0, "fit_reward_model": 40.0, "ask_teacher": 500.0, "decide": 0.0}
    for path, seconds in (taken | exams).items():
        (before / path).mkdir(parents=True)
        (before / path / "manifest.json").write_text(json.dumps({"seconds": seconds}))
    assert end_of_asking(hours, config, tonight, before) == NOW + 540 - 131
    (tonight / "freeze_journal").mkdir(parents=True)
    (tonight / "freeze_journal" / "manifest.json").write_text(json.dumps({"seconds": 9.0}))
    assert end_of_asking(hours, config, tonight, before) == NOW + 540 - 130
    assert end_of_asking(Hours(), config, tonight, before) == float("inf")
