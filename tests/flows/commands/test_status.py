"""What runs, where it is and how long it will take, from the files alone."""

import datetime
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import SUMMARY, Home
from conf.storage.locks import NIGHT, hold, holder
from flows.commands.status import status, told
from flows.run.context import Night, freeze_config
from flows.run.estimate import places, seconds_left
from flows.run.progress import note_progress, read_progress
from tasks.incidents import end_early
from tests.conf.storage.lock_holder import holder as other_process

DATE, BEFORE = "2026-11-20", "2026-11-19"
LESSONS = {"lessons/corrections": 2.0, "lessons/words": 1.0, "lessons/feedback": 1.0}
OTHERS = {"freeze_journal": 1.0, "distill": 30.0, "fit_reward_model": 1.0} | LESSONS
EXAM = {f"evaluate/{who}": 20.0 for who in ("champion", "distilled", "candidate")}


def config(*overrides: str) -> NightConfig:
    return load_night(STARTER, ["grpo.rounds=6", "grpo.quiz_every_rounds=2", *overrides])


def commit(
    folder: Path, stages: dict[str, float], rounds: Sequence[float | None] = (), quiz: float | None = None
) -> None:
    """Stages with their seconds; rounds with theirs by the clock (None: an interruption cut it in two)."""
    for place, seconds in stages.items():
        (folder / place).mkdir(parents=True)
        (folder / place / "manifest.json").write_text(json.dumps({"seconds": seconds}))
    for number, seconds in enumerate(rounds, 1):
        place = folder / f"round-{number:02d}"
        commit(place, {"checkpoint": 3.0} | ({"quiz": quiz} if quiz and number % 2 == 0 else {}))
        figures = {} if seconds is None else {"seconds_round": seconds}
        (place / "checkpoint" / "metrics.json").write_text(json.dumps(figures))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The night before: 36 s without rounds and exam, rounds of 10 s, exams of 20 s."""
    commit(tmp_path / BEFORE, OTHERS | EXAM, [10.0] * 6, quiz=4.0)
    return tmp_path / BEFORE


def test_at_the_start_all_is_as_the_night_before(tmp_path: Path, before: Path) -> None:
    (tmp_path / DATE).mkdir()
    assert seconds_left(tmp_path / DATE, config(), "starting", 0.0, before) == 36 + 6 * 10 + 3 * 4 + 60
    assert seconds_left(tmp_path / DATE, config(), "distill", 12.0, before) == 36 + 60 + 12 + 60 - 12
    assert seconds_left(tmp_path / DATE, config(), "distill", 500.0, before) == 36 + 60 + 12 + 60 - 30


def test_its_own_rounds_count_for_more_than_last_nights(tmp_path: Path, before: Path) -> None:
    commit(tmp_path / DATE, OTHERS, [30.0, None, 6.0, 8.0], quiz=5.0)
    assert seconds_left(tmp_path / DATE, config(), "round 5 · sample", 0.0, before) == 2 * 8 + 1 * 5 + 60
    assert seconds_left(tmp_path / DATE, config(), "round 5 · sample", 3.0, before) == 2 * 8 + 1 * 5 + 60 - 3
    assert seconds_left(tmp_path / DATE, config(), "round 5 · sample", 99.0, before) == 2 * 8 + 1 * 5 + 60 - 8


def test_its_own_exams_count_for_more_than_last_nights(tmp_path: Path, before: Path) -> None:
    commit(tmp_path / DATE, OTHERS | {"evaluate/champion": 50.0, "evaluate/distilled": 45.0}, [8.0] * 6)
    assert seconds_left(tmp_path / DATE, config(), "evaluate · candidate", 10.0, before) == 40.0
    assert seconds_left(tmp_path / DATE, config(), "decide", 10.0, before) == 50.0  # its exam is not committed


def test_a_night_that_ended_its_rounds_early_begins_no_more(tmp_path: Path, before: Path) -> None:
    commit(tmp_path / DATE, OTHERS, [8.0])
    assert seconds_left(tmp_path / DATE, config(), "evaluate · candidate", 0.0, before) == 60.0
    assert seconds_left(tmp_path / DATE, config(), "round 2 · score", 0.0, before) == 5 * 8 + 3 * 4 + 60


def test_adapters_are_merged_too(tmp_path: Path, before: Path) -> None:
    commit(tmp_path / DATE, OTHERS, [8.0] * 6)
    assert seconds_left(tmp_path / DATE, config("lora={}"), "merge", 0.0, before) is None
    commit(before, {"merge": 7.0})
    assert seconds_left(tmp_path / DATE, config("lora={}"), "merge", 2.0, before) == 60 + 7 - 2


def test_all_blocks_and_the_lessons_between_them_count(tmp_path: Path, before: Path) -> None:
    order = config("stages=[distill, {grpo: 2}, distill, {grpo: 3}]", "lora={}")
    commit(before, {"distill-2": 12.0, "merge": 7.0})
    commit(tmp_path / DATE, OTHERS | {"merge": 5.0, "evaluate/champion": 20.0, "evaluate/distilled": 20.0}, [8.0] * 2)
    assert seconds_left(tmp_path / DATE, order, "distill-2", 0.0, before) is None  # nobody knows what merge-2 takes
    commit(before, {"merge-2": 6.0})
    assert seconds_left(tmp_path / DATE, order, "distill-2", 2.0, before) == 12 + 3 * 8 + 1 * 4 + 6 + 20 - 2
    end_early(tmp_path / DATE, 2, "no time was left", 2)
    assert seconds_left(tmp_path / DATE, order, "evaluate · candidate", 0.0, before) == 20


FURTHER = ("stages=[distill, {grpo: 2}, self_distill, lessons, {grpo: 4}]", "preference_learning=both")
TEACHER = "distill.teacher={base_url: 'http://127.0.0.1:8000/v1', model: wise}"
FILE = "distill.files=[{source: some.jsonl}]"


def test_every_stage_outside_the_rounds_counts(tmp_path: Path, before: Path) -> None:
    order = config(*FURTHER, TEACHER, FILE)
    others = {"import_traces": 3.0, "ask_teacher": 200.0, "self_distill_answers": 0.5, "self_distill": 9.0}
    others |= {"lessons/picks": 4.0}
    assert set(places(order)) == {*OTHERS, *EXAM, *others}
    assert len(places(order)) == len(set(places(order)))
    for place, seconds in others.items():
        (tmp_path / DATE).mkdir(exist_ok=True)
        assert seconds_left(tmp_path / DATE, order, "starting", 0.0, before) is None
        commit(before, {place: seconds})
    whole = 36 + sum(others.values()) + 6 * 10 + 3 * 4 + 60
    assert seconds_left(tmp_path / DATE, order, "starting", 0.0, before) == whole
    assert seconds_left(tmp_path / DATE, order, "ask teacher", 50.0, before) == whole - 50
    assert seconds_left(tmp_path / DATE, order, "lessons · picks", 1.0, before) == whole - 1


def test_what_the_day_decides_counts_as_the_night_before_had_it(tmp_path: Path, before: Path) -> None:
    own = config("exam.vault=100", "lessons.examine=true", "stages=[distill, lessons, {grpo: 6}]")
    extra = {"evaluate/step-1": 20.0, "lessons/evaluate": 20.0, "lessons/words/evaluate": 20.0}
    rest = {f"picks/{who}": 2.0 for who in ("champion", "distilled", "candidate")}
    rest |= {"vault/ancestor": 11.0, "vault/serving": 13.0, "vault/comparison": 1.0}
    assert not {*extra, *rest} & {*places(own)}
    tonight = tmp_path / DATE
    commit(tonight, {"freeze_journal": 1.0, "distill": 30.0})
    plain = seconds_left(tonight, own, "lessons · corrections", 0.0, before)
    commit(before, extra | rest)
    assert plain is not None
    assert seconds_left(tonight, own, "evaluate · step-1", 0.0, before) == plain + 60 + 31
    assert seconds_left(tonight, own, "lessons · corrections", 0.0, before) == plain + 40 + 31  # it had no exam
    commit(tonight, LESSONS | {"fit_reward_model": 1.0, "vault/ancestor": 11.0}, [10.0] * 6)
    commit(tonight, {"evaluate/champion": 20.0, "evaluate/distilled": 20.0})
    assert seconds_left(tonight, own, "picks · candidate", 1.0, before) == 2 + 20 + 14 - 1
    assert seconds_left(tonight, own, "evaluate · candidate", 0.0, before) == 20 + 14  # it ranked no picks
    commit(tonight, {"evaluate/candidate": 20.0})
    assert seconds_left(tonight, own, "vault · serving", 3.0, before) == 14 - 3


def test_a_night_after_its_rounds_waits_for_none(tmp_path: Path, before: Path) -> None:
    """A severe alarm ended them; the candidate ranks the picks."""
    commit(tmp_path / DATE, OTHERS | {"evaluate/champion": 20.0, "evaluate/distilled": 20.0}, [8.0])
    commit(before, {"picks/candidate": 2.0})
    assert seconds_left(tmp_path / DATE, config(), "picks · candidate", 0.0, before) == 2 + 20


def test_of_worked_solutions_that_are_not_learnt_none_are_asked_for() -> None:
    assert set(places(config(TEACHER, FILE, "distill.steps=0"))) == {*OTHERS, *EXAM}
    assert not {"import_traces", "ask_teacher"} & set(places(config(TEACHER, FILE, "stages=[grpo]")))
    assert set(places(config("lora={}", "grpo.rounds=0"))) == {*OTHERS, *EXAM}  # there is nothing to merge
    twice = config("stages=[distill, grpo, distill]", FILE)
    assert [place for place in places(twice) if place == "import_traces"] == ["import_traces"]


def test_the_first_night_has_nothing_to_tell_it_from(tmp_path: Path) -> None:
    commit(tmp_path / DATE, OTHERS, [8.0, 9.0])
    assert seconds_left(tmp_path / DATE, config(), "round 3 · sample", 0.0, None) is None
    commit(tmp_path / DATE, {"evaluate/champion": 20.0})
    assert seconds_left(tmp_path / DATE, config(), "round 3 · sample", 0.0, None) == 4 * 8.5 + 40


def finish(folder: Path, decision: str = "kept", name: str = "starter") -> None:
    freeze_config(folder, config(f"name={name}"), fresh=False)
    accuracy = {"champion": {"accuracy": 0.055}, "candidate": {"accuracy": 0.6125}}
    summary = {"decision": decision, "target": "arithmetic-1-2", "accuracy": accuracy, "alarms": ["an alarm"]}
    (folder / SUMMARY).write_text(json.dumps(summary))


def test_nothing_runs_on_an_empty_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "school")
    assert status(home) == {"running": None, "nights": []}
    assert told(status(home)) == ["no nights yet: `nightschool night` runs the first"]
    assert list(tmp_path.iterdir()) == []


def test_a_night_that_runs(tmp_path: Path) -> None:
    home = Home(tmp_path)
    commit(home.night(BEFORE), OTHERS | EXAM, [10.0] * 6, quiz=4.0)
    finish(home.night(BEFORE))
    finish(home.night("2026-11-18"), name="other")  # of other stages and other lengths
    night = Night(home, DATE, config())
    freeze_config(night.folder, night.config, fresh=False)
    with hold(home.root, f"{NIGHT}{DATE}"):
        night.tell("round 2 · refill 1 · sample", None)
        commit(night.folder, OTHERS, [8.0])
        found = status(home)
        running: Any = found["running"]
        assert {name: running[name] for name in ("night", "process", "stage", "round", "rounds")} == {
            "night": DATE,
            "process": os.getpid(),
            "stage": "round 2 · refill 1 · sample",
            "round": 2,
            "rounds": 6,
        }
        assert 0 < 5 * 8 + 3 * 4 + 60 - running["seconds_left"] + 1e-9 <= 8  # what the round has had of its time
        for since in (running["since"], running["stage_since"]):
            assert datetime.datetime.fromisoformat(since).utcoffset() is not None
        assert [(entry["night"], entry["state"]) for entry in found["nights"]] == [
            ("2026-11-18", "kept"),
            (BEFORE, "kept"),
            (DATE, "running"),
        ]
        lines = told(found)
        assert f"the night {DATE} since {running['since']} (process {os.getpid()})" in lines[0]
        assert lines[0].endswith(", round 2 of 6 · refill 1 · sample; about 2 minutes more")
        soon = {"running": {**running, "seconds_left": 20.0}, "nights": []}
        assert told(soon)[0].endswith("; about a minute more, or less")
        assert lines[1:3] == [
            "2026-11-18  kept         arithmetic-1-2: 0.055 → 0.613",
            "            alarm: an alarm",
        ]
        night.tell("round 2 · refill 1 · sample", 3.0)
        assert json.dumps(status(home)).count("\n") == 0
    found = status(home)
    assert found["running"] is None
    assert found["nights"][-1]["state"] == "interrupted"
    again = f"nightschool night --config {night.folder}/config.yaml --date {DATE}"
    assert found["nights"][-1]["detail"].endswith(f"; go on with: {again}")
    assert load_night(night.folder / "config.yaml") == night.config
    assert not list(tmp_path.rglob("*.draft"))


def test_another_process_holds_the_home(tmp_path: Path) -> None:
    """It has not come as far as a folder; what an earlier start noted is not its own."""
    note_progress(tmp_path, "round 2 · sample", False)
    assert read_progress(tmp_path, os.getpid() + 1) is None
    home = Home(tmp_path)
    home.night(DATE).mkdir(parents=True)
    note_progress(home.night(DATE), "round 2 · sample", False)
    with other_process(tmp_path) as other:
        running: Any = status(home)["running"]
        assert (running["process"], running["stage"], running["stage_since"]) == (other.pid, "starting", None)
        assert (running["round"], running["rounds"], running["seconds_left"]) == (None, None, None)
        assert told(status(home))[0].endswith(", starting; nobody knows yet for how long")


def test_an_upkeep_that_holds_the_home_is_no_night(tmp_path: Path) -> None:
    with hold(tmp_path, "nightschool prune"):
        assert status(Home(tmp_path)) == {"running": None, "nights": []}
        (tmp_path / "night.lock").write_text("")
        assert holder(tmp_path) == {}
        assert status(Home(tmp_path))["running"] is None


def test_a_progress_note_that_cannot_be_written_or_read_costs_nothing(tmp_path: Path) -> None:
    note_progress(tmp_path / "gone", "distill", False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "progress.json").write_text('{"stage": "dis')
    assert read_progress(tmp_path, os.getpid()) is None
