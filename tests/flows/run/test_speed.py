"""What a night's parts take on a machine, and how many rounds fit into its hours."""

import json
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from conf.storage.layout import PACE_FOLDER
from flows.commands.doctor import _speed
from flows.run import speed
from flows.run.estimate import Estimate
from flows.run.speed import estimate, expected, forecast
from models.hf.checkpoint import LINEAGE
from tests.flows.nights import finished_night

STUDENT = 0.135e9
CHAMPION = "c0ffee"


def starter(*overrides: str) -> NightConfig:
    settings = ["budget_minutes=15", "grpo.prompts_per_round=48", "grpo.max_completion_tokens=64"]
    settings += ["distill.steps=48", "distill.batch_size=24", "exam.max_completion_tokens=64", "grpo.rounds=24"]
    return load_night(STARTER, [*settings, *overrides])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a finished night whose rounds took twice as long as at 140 GFLOP/s, and 3 s for the rest of each."""
    home, usual = Home(tmp_path), estimate(starter(), STUDENT, 140e9)
    night = home.night("2026-11-20")
    for number in (1, 2, 3):
        folder = night / f"round-0{number}" / "checkpoint"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")
        seconds = {"seconds_sample": 2 * usual.sampling, "seconds_update": 2 * usual.update}
        metrics = seconds | {"seconds_round": sum(seconds.values()) + 3}
        (folder / "metrics.json").write_text(json.dumps(metrics))
    finish(home, low=0.4)
    return home


def finish(home: Home, low: float) -> None:
    """Finish the night with the champion kept, whose accuracy has this lower bound."""
    decided = {"decision": "kept", "digests": {"champion": CHAMPION}, "accuracy": {"champion": {"low": low}}}
    finished_night(home, "2026-11-20", starter(), **decided)


def test_the_estimate_is_near_what_was_measured_on_two_slow_cores() -> None:
    """On an EPYC Zen 3 at 140 GFLOP/s: a round of 384 answers, one of 256, and a step of 24 worked solutions.

    They were measured when each prompt was still read as a whole: 30 of its 50 tokens are shared now.
    """
    night = ("grpo.prompts_per_round=48", "grpo.group_size=8", "grpo.train_on=null", "distill.rehearsal=0")
    known = estimate(starter(*night), STUDENT, 140e9)
    assert known.sampling == pytest.approx(42 * 10_800 / 12_240, rel=0.1)
    assert 45 <= known.update <= 65
    assert known.step == pytest.approx(11.8 * 0.6, rel=0.15)


def test_the_estimate_of_a_small_student_is_near_what_was_measured() -> None:
    """One million parameters on an EPYC Zen 3 at 140 GFLOP/s: a round took 1.7 s, and a step 0.1 s."""
    known = estimate(load_night(STARTER.with_name("small.yaml")), 1e6, 140e9)
    assert known.round == pytest.approx(1.7, rel=0.25)
    assert known.step < 0.5


def test_the_rounds_that_fit() -> None:
    """Of 900 s: 90 fixed, 135 for the exam, 75 for 150 quizzed; of 600 left 450 at most for the lesson."""
    known = Estimate(sampling=30, update=20, answer=0.5, step=10, steps=48, quizzed=150)
    assert (known.steps_that_fit(15), known.rounds_that_fit(15)) == (45, 3)
    assert Estimate(30, 20, 0.5, 10, 5, 150).rounds_that_fit(15) == 11  # a lesson of 50 s
    assert known.rounds_that_fit(1) == 0
    assert known.least == 90 + 100
    enough = known.minutes_enough()
    assert known.rounds_that_fit(enough) > 0
    assert known.steps_that_fit(enough - 1) < known.steps_that_fit(enough) == 48  # the whole lesson


def test_the_rounds_of_an_earlier_night_are_believed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a night whose rounds have another size. Nothing is measured then."""
    monkeypatch.setattr(speed, "measure_speed", pytest.fail)
    config = starter("grpo.prompts_per_round=96")
    known, usual = expected(home, config), estimate(config, STUDENT, 140e9)
    assert known.round == pytest.approx(2 * usual.round + 3, rel=0.1)
    assert (known.answer, known.step) == pytest.approx((2 * usual.answer, 2 * usual.step), rel=0.1)


def test_a_lesson_of_episodes_takes_what_it_took_in_an_earlier_night(home: Home) -> None:
    """Their lengths cannot be predicted."""
    night = home.night("2026-11-20")
    (night / PACE_FOLDER).mkdir()
    (night / PACE_FOLDER / "distill.json").write_text('{"planned": 48, "steps": 48, "seconds_a_step": 6.0}')
    known = expected(home, starter("benchmarks=[{name: ants}]", "distill.batch_size=8"))
    assert known.step == 6.0 * 8 / 24


def test_a_trained_student_has_no_lesson_on_a_generated_day(home: Home) -> None:
    champion = home.checkpoints / CHAMPION
    champion.mkdir(parents=True)
    lessons = [expected(home, starter())]
    (champion / LINEAGE).write_text('{"parent": "cafe42"}')
    lessons += [expected(home, starter(*more)) for more in ((), ("distill.reference_solutions=64",))]
    said = {"messages": [{"role": "user", "content": "2 + 2"}], "response": "#### 4"}
    home.journal.mkdir()
    line = {"version": 1, "kind": "trace", "at": "2026-01-02", "teacher": "me", **said}
    (home.journal / "2026-01-02.jsonl").write_text(json.dumps(line))
    lessons.append(expected(home, starter()))
    assert [known and known.steps for known in lessons] == [48, 0, 48, 48]
    untrained, trained = lessons[0], lessons[2]
    assert trained.step > untrained.step  # it first answers the problems


def test_a_trained_student_has_a_lesson_once_a_level_has_joined(home: Home) -> None:
    champion, config = home.checkpoints / CHAMPION, starter("budget_minutes=30")
    champion.mkdir(parents=True)
    (champion / LINEAGE).write_text('{"parent": "cafe42"}')
    assert "lesson" not in _speed(home, config).found
    finish(home, low=0.6)
    assert "lesson" in _speed(home, config).found


@pytest.mark.parametrize(
    ("minutes", "level", "words"),
    [
        (180, "ok", "At this machine's speed about {n} rounds fit into 180 minutes; 24 are planned."),
        (
            30,
            "ok",
            "At this machine's speed about {n} rounds fit into 30 minutes; 24 are planned. "
            "The lesson has time for about {steps} of at most 48 steps.",
        ),
        (6, "warning", "At this machine's speed no round fits into 6 minutes; {enough} minutes would do."),
        (1, "error", "budget_minutes: 1.0 minutes are too few: start-up"),
    ],
)
def test_what_is_said_before_a_night(home: Home, minutes: float, level: str, words: str) -> None:
    config, known = starter(f"budget_minutes={minutes}"), expected(home, starter())
    steps, enough = known.steps_that_fit(minutes), known.minutes_enough()
    words = words.format(n=known.rounds_that_fit(minutes), steps=steps, enough=enough)
    finding = _speed(home, config)
    assert (finding.level, finding.found.startswith(words)) == (level, True), finding
    if level == "error":
        with pytest.raises(InputError, match=f"take about {-(-known.least // 60):.0f} minutes on this machine"):
            forecast(home, config)
    else:
        assert forecast(home, config).sentence == words
    assert forecast(home, starter("budget_minutes=null")) is None
