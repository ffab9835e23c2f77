"""A night's hours, and whether another round fits, worked out by hand."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.budget import Allowance, Division, divide, end_of_asking, seconds_answering
from flows.run.context import Night
from flows.run.dates import Hours
from flows.run.estimate import most_for_lessons
from flows.training.reward_model import slowest_ranking
from tasks.stage import Artifact, commit
from tasks.workers.worker import HoursOverError

NOW = 1_795_217_400.0  # 2026-11-21 00:30 in Berlin
KNOWN: Any = SimpleNamespace(round=30.0, step=25.0, minutes_enough=lambda: 4)  # an estimate


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
    assert hours("budget_minutes=90") == Hours(NOW + 5400, "budget_minutes (90)", NOW)
    berlin = ["deadline=06:30", "deadline_time_zone=Europe/Berlin"]
    assert hours(*berlin) == Hours(NOW + 6 * 3600, "the deadline (06:30)", NOW)
    assert hours(*berlin, "budget_minutes=90").because == "budget_minutes (90)"
    assert hours(*berlin, "budget_minutes=480").because == "the deadline (06:30)"


def quiz(folder: Path, seconds: float, asked: int = 200) -> Artifact:
    """A quiz of so many problems, answered in so many seconds after the engine's start."""
    folder.mkdir()
    return commit(folder, "quiz", {}, seconds + 30.0, {"asked": asked, "seconds_answering": seconds})


@pytest.mark.parametrize(
    ("seconds", "asked", "stored", "guards", "most", "exam"),
    [
        (10.0, 200, 0, 0, 868, 86.8),  # 2 · 868 answers of 0.05 s are less than 15 % of 900 s
        (20.0, 200, 0, 0, 434, 86.8),  # 173.6 s would be more
        (20.0, 200, 868, 0, 868, 86.8),  # but the champion's are stored
        (100.0, 200, 868, 0, 217, 108.5),  # 0.5 s · (2 · 434 − 434) would be 217 s
        (1000.0, 200, 0, 0, 100, 1000.0),  # the first look is never shortened
        (1000.0, 200, 868, 0, 100, 500.0),  # the champion's stored answers take no time
        (10.0, 200, 0, 150, 868, 86.8),  # enough for one look and the guards' 2 · 150 answers
        (10.0, 200, 0, 900, 868, 100.0),  # not enough for these
        (20.0, 40, 0, 0, 108, 108.0),  # the file has 40 for a quiz of 200: 0.5 s an answer
        (None, 200, 0, 150, 868, 135.0),  # nothing is known
    ],
)
@pytest.mark.usefixtures("clock")
def test_the_exam_gets_what_its_longest_length_takes_or_is_halved(
    tmp_path: Path, seconds: float | None, asked: int, stored: int, guards: int, most: int, exam: float
) -> None:
    taken = None if seconds is None else quiz(tmp_path / "quiz", seconds, asked)
    config = load_night(STARTER, ["budget_minutes=15"])
    found = divide(Hours.of(config, "2026-11-20"), config, tmp_path, 868, stored, taken, guards=guards)
    assert (found.most, found.exam) == (most, pytest.approx(exam))
    assert found.looks[-1] == most


def test_lessons_get_half_of_what_is_left_and_the_division_is_kept(tmp_path: Path, clock: list[float]) -> None:
    """Of 900 s, 100 are over; 86.8 are for the exam and 60 for the report: lessons and rounds 326.6 each."""
    config, taken = load_night(STARTER, ["budget_minutes=15"]), quiz(tmp_path / "quiz", 10.0)
    assert (seconds_answering(taken), seconds_answering(None)) == (10.0, 0.0)
    arguments = Hours.of(config, "2026-11-20"), config
    clock[0] += 100
    found = divide(*arguments, tmp_path, 868, 0, taken, lambda: KNOWN)
    assert (found.hours, found.before, found.after) == (900, 100, 60)
    assert (found.lessons, found.rounds) == pytest.approx((653.2 / 2, 653.2 / 2))
    assert (found.round, found.enough, found.steps) == (30.0, 4, 14)  # of 25 s
    clock[0] += 500
    assert divide(*arguments, tmp_path, 400, 400, None) == found  # when the night resumes
    no_lesson = load_night(STARTER, ["budget_minutes=15", "stages=[grpo]"])
    assert divide(arguments[0], no_lesson, tmp_path / "quiz", 868, 0, taken).lessons == 0
    no_round = load_night(STARTER, ["budget_minutes=15", "stages=[distill]"])
    (tmp_path / "no_round").mkdir()
    assert divide(arguments[0], no_round, tmp_path / "no_round", 868, 0, taken).rounds == 0


@pytest.mark.parametrize(
    ("a_round", "lessons"),
    [(None, 300.0), (20.0, 300.0), (30.0, 300.0), (40.0, 400.0), (50.0, 450.0), (90.0, 330.0), (120.0, 300.0)],
)
def test_where_few_rounds_fit_lessons_get_more(a_round: float | None, lessons: float) -> None:
    """Of 600 s. Ten rounds of 40 s take 400 s; of 50 s and 90 s, three remain; of 120 s, not even these."""
    assert most_for_lessons(600.0, a_round) == lessons


def test_the_time_of_a_reward_model_fitted_before_the_division_is_not_taken_from_the_lessons_again(
    tmp_path: Path, clock: list[float]
) -> None:
    """As with `start_from: day`. Of 900 s, 100 are over, 40 of them for the reward model."""
    config, taken = load_night(STARTER, ["budget_minutes=15"]), quiz(tmp_path / "quiz", 10.0)
    arguments = Hours.of(config, "2026-11-20"), config
    (tmp_path / "fit_reward_model").mkdir()
    commit(tmp_path / "fit_reward_model", "fit_reward_model", {}, 40.0)
    clock[0] += 100
    found = divide(*arguments, tmp_path, 868, 0, taken, lambda: KNOWN)
    assert (found.left(tmp_path, config.steps), found.rounds) == pytest.approx((326.6, 326.6))
    assert (found.lessons, found.steps) == (pytest.approx(366.6), 14)


def test_without_hours_nothing_is_cut_short_and_everything_fits(tmp_path: Path, clock: list[float]) -> None:
    config = load_night(STARTER, ["budget_minutes=null"])
    found = divide(Hours(), config, tmp_path, 868, 0, quiz(tmp_path / "quiz", 1e6), pytest.fail)
    assert found == Division(868)
    assert found.pace(tmp_path, config.steps[0], config.steps) is None
    allowed = Allowance(Hours(), load_night(STARTER), Division(100))
    allowed.rounds = [1e9]
    clock[0] += 1e9
    assert fits(allowed)


def test_lessons_share_their_seconds_evenly_and_what_is_not_used_is_left_to_the_next(tmp_path: Path) -> None:
    config = load_night(STARTER, ["stages=[distill, lessons, {grpo: 1}, distill]"])
    division, (first, _, _, last) = Division(100, lessons=300.0), config.steps
    pace = division.pace(tmp_path, first, config.steps)
    assert (pace.seconds, pace.file) == (100.0, tmp_path / "pace" / "distill.json")
    taken = {"rehearsal": 30.0, "distill": 40.0, "lessons/words": 50.0, "fit_reward_model": 60.0}
    for path, seconds in taken.items():
        (tmp_path / path).mkdir(parents=True)
        commit(tmp_path / path, path, {}, seconds)
    pace = division.pace(tmp_path, last, config.steps)
    assert (pace.seconds, pace.file.name) == (120.0, "distill-2.json")


def allowance(tmp_path: Path, minutes: float, *settings: str, **seconds: float) -> Allowance:
    """With 100 s for the exam and 60 s for the report."""
    config = load_night(STARTER, [f"budget_minutes={minutes}", *settings])
    division = Division(100, exam=100.0, after=60.0, round=seconds.pop("round", None), answer=0.2)
    return Allowance(Hours.of(config, "2026-11-20"), config, division, **seconds)


def test_the_next_round_is_as_slow_as_the_slower_of_median_and_last_within_limits(tmp_path: Path) -> None:
    allowed = allowance(tmp_path, 10)
    expected: list[tuple[list[float], float]] = [([], 0), ([30], 30), ([90, 30, 30], 30), ([90, 30, 30, 50], 50)]
    stood_still: list[tuple[list[float], float]] = [([70, 700], 140), ([30, 30, 700], 60), ([30, 700, 30, 30], 30)]
    for allowed.rounds, seconds in [*expected, ([60, 50, 10], 50), *stood_still]:
        assert allowed.round == seconds


def fits(allowed: Allowance, quizzed: bool = False) -> bool:
    try:
        allowed.require(4, quizzed)
    except HoursOverError:
        return False
    return True


def test_a_round_begins_only_if_the_exam_still_fits(tmp_path: Path, clock: list[float]) -> None:
    """100 s of exam and 60 s for the rest are 160 s; the round takes 40."""
    allowed = allowance(tmp_path, 10)
    allowed.rounds = [90.0, 40.0, 40.0]
    assert allowed.after == 160
    clock[0] += 600 - 200
    assert fits(allowed)
    clock[0] += 1
    with pytest.raises(HoursOverError) as caught:
        allowed.require(4, quizzed=False)
    assert str(caught.value) == (
        "round 4 needs about 0.7 minutes, and exam and report 2.7 minutes, but budget_minutes (10) left 3.3 minutes"
    )


def test_its_quiz_has_to_fit_too(tmp_path: Path, clock: list[float]) -> None:
    allowed = allowance(tmp_path, 10, quiz=100.0)
    assert allowed.after == 260  # a quiz comes after the rounds, too
    allowed.rounds = [40.0]
    clock[0] += 600 - 330
    assert fits(allowed)
    assert not fits(allowed, quizzed=True)  # the first takes as long as that before the lessons, 100 s
    allowed.quizzes = [20.0, 30.0]
    assert fits(allowed, quizzed=True)
    clock[0] += 1
    assert not fits(allowed, quizzed=True)


def test_the_rate_falls_to_zero_over_the_rounds_that_fit(tmp_path: Path, clock: list[float]) -> None:
    """160 s are reserved. 440 s have room for ten rounds of 44 s; with faster ones, for more than the six planned."""
    allowed = allowance(tmp_path, 10, round=44.0)
    assert [allowed.rate_factor(number) for number in (1, 2)] == [1.0, 10 / 11]  # no time has passed
    clock[0] += 88
    allowed.rounds = [44.0, 44.0]
    assert allowed.rate_factor(3) == 0.8
    clock[0] += 600  # the last round always learns something
    assert allowed.rate_factor(3) == pytest.approx(1 / 3)
    planned = allowance(tmp_path, 10, "grpo.rounds=6", round=1.0)
    assert [planned.rate_factor(number) for number in (1, 4, 6)] == pytest.approx([1, 1 / 2, 1 / 6])
    endless = Allowance(Hours(), load_night(STARTER, ["grpo.rounds=4"]), Division(100))
    assert endless.rate_factor(4) == 0.25


def test_a_student_that_answers_faster_leaves_more_time(tmp_path: Path) -> None:
    """The quiz took 40 s before the lessons, 0.2 s an answer, and 20 s after: the exam's 100 take it 10 s less."""
    assert allowance(tmp_path, 10, quiz=40.0).after == 100 + 60 + 40
    assert allowance(tmp_path, 10, quiz=40.0, latest=20.0).after == 90 + 60 + 20
    assert allowance(tmp_path, 10, quiz=40.0, latest=50.0).after == 100 + 60 + 50


def test_merge_and_ranking_come_after_the_rounds_too(tmp_path: Path) -> None:
    adapters = load_night(STARTER, ["budget_minutes=10", "lora={}"])
    assert divide(Hours.of(adapters, "2026-11-20"), adapters, tmp_path, 868, 0, None).after == 120
    for model, seconds in {"champion": 8.0, "candidate": 4.0}.items():
        (tmp_path / "picks" / model).mkdir(parents=True)
        (tmp_path / "picks" / model / "manifest.json").write_text(json.dumps({"seconds": seconds}))
    assert slowest_ranking(tmp_path) == 8
    assert slowest_ranking(tmp_path / "nowhere") == 0
    assert allowance(tmp_path, 10, ranking=8.0).after == 168


def test_the_first_round_is_expected_to_take_what_the_division_says(tmp_path: Path, clock: list[float]) -> None:
    allowed = allowance(tmp_path, 10)
    clock[0] += 600 - 160
    assert fits(allowed)  # nothing is known of it
    clock[0] -= 50
    hours = allowed.hours
    for expected, fit in ((49.0, True), (51.0, False)):  # as the machine's speed has it
        allowed = allowance(tmp_path, 10, round=expected)
        allowed.hours = hours
        assert fits(allowed) is fit


def test_all_but_rounds_may_end_half_an_hour_late(tmp_path: Path, clock: list[float]) -> None:
    night = Night(Home(tmp_path), "2026-11-20", load_night(STARTER, ["budget_minutes=60"]))
    assert (night.engine.until, night.trainer.until) == (NOW + 5400, NOW + 5400)
    night.limit_workers(before_end=185)
    assert (night.engine.until, night.trainer.until) == (NOW + 3415, NOW + 3415)
    clock[0] += 9000  # the machine slept
    night.limit_workers(before_end=-1800)
    assert night.engine.until == NOW + 10800
    endless = Night(Home(tmp_path), "2026-11-20", load_night(STARTER, ["budget_minutes=null"]))
    assert endless.engine.until == float("inf")


def test_a_teacher_is_asked_for_half_of_the_time_left(tmp_path: Path, clock: list[float]) -> None:
    """Of 600 s, 60 are for the rest."""
    hours = Hours.of(load_night(STARTER, ["budget_minutes=10"]), "2026-11-20")
    assert end_of_asking(hours) == NOW + 540 - 270
    clock[0] += 40
    assert end_of_asking(hours) == NOW + 540 - 250
    assert end_of_asking(Hours()) == float("inf")
