"""`nightschool status`: what runs, where it is and the time left, from the files alone."""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from conf.storage.locks import NIGHT, hold, take_server_lock
from flows.commands.home.status import lines_of, status
from flows.run.context import Night, freeze_config
from flows.run.history import note_progress
from tests.conf.storage.lock_holder import holder
from tests.flows.commands.command import finish

DATE, BEFORE = "2026-11-20", "2026-11-19"


def test_a_home_without_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "school")
    monkeypatch.delenv("NIGHTSCHOOL_HOME", raising=False)
    unset = f"no nights in {home.root} (NIGHTSCHOOL_HOME is not set); `nightschool night` runs the first"
    assert lines_of(home, status(home)) == [unset]


def test_a_night_that_runs(tmp_path: Path) -> None:
    home = Home(tmp_path)
    finish(home, date=BEFORE)
    night = Night(home, DATE, load_night(STARTER, ["grpo.rounds=6"]))
    freeze_config(night.folder, night.config, fresh=False)
    with hold(home.root, f"{NIGHT}{DATE}"):
        note_progress(night.folder, "round 2 · refill 1 · sample", done=False)
        state = status(home)
        assert json.dumps(state).count("\n") == 0
        running: Any = state["running"]
        assert (running["night"], running["process"], running["rounds"]) == (DATE, os.getpid(), 6)
        assert (running["stage"], running["round"]) == ("round 2 · refill 1 · sample", 2)
        for since in (running["since"], running["stage_since"]):
            assert datetime.datetime.fromisoformat(since).utcoffset() is not None
        assert [entry["state"] for entry in state["nights"]] == ["promoted", "running"]
        first, *others = lines_of(home, state)
        assert first == (
            f"running: the night {DATE} since {running['since']} (process {os.getpid()}), "
            "round 2 of up to 6 · refill 1 · sample; about a minute left, or less"
        )
        assert others[1] == "            alarm: the grader failed on 3 completions"
    assert status(home)["running"] is None
    assert status(home)["nights"][-1]["state"] == "interrupted"
    assert not list(tmp_path.rglob("*.draft"))


def test_a_night_that_another_process_has_just_started(tmp_path: Path) -> None:
    """It has no folder yet; what an earlier start noted is not its own."""
    home = Home(tmp_path)
    home.night(DATE).mkdir(parents=True)
    note_progress(home.night(DATE), "round 2 · sample", done=False)
    with holder(tmp_path) as other:
        running: Any = status(home)["running"]
    assert (running["process"], running["stage"], running["stage_since"]) == (other.pid, "starting", None)
    assert (running["round"], running["rounds"], running["seconds_left"]) == (None, None, None)


def test_without_an_earlier_night_the_time_left_is_that_of_its_hours(tmp_path: Path) -> None:
    home = Home(tmp_path)
    freeze_config(home.night(DATE), load_night(STARTER, ["budget_minutes=15"]), fresh=False)
    with hold(home.root, f"{NIGHT}{DATE}"):
        assert 800 < status(home)["running"]["seconds_left"] <= 900


def test_a_pruning_that_holds_the_home_is_not_a_night(tmp_path: Path) -> None:
    with hold(tmp_path, "nightschool prune"):
        assert status(Home(tmp_path))["running"] is None
        (tmp_path / "night.lock").write_text("")
        assert status(Home(tmp_path))["running"] is None


def test_a_server_by_day(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with take_server_lock(home.root, 4711):
        assert status(home)["serving"] == "4711"
        line = "serving: the model `daytime`, by nightschool serve or teach (process 4711)"
        assert line in lines_of(home, status(home))
    assert status(home)["serving"] is None


def test_it_imports_no_library_that_takes_seconds() -> None:
    found = "import sys, flows.cli, flows.commands.home.status; print({'torch', 'prefect', 'mlflow'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", found], text=True) == "set()\n"
