"""Nights that are killed and resumed, and that the checks of them can fail. See `python -m tests.chaos`."""

import os
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from prefect.settings import get_current_settings

from conf.storage.durable import make_folder, sync, write_atomically
from conf.storage.home import Home
from flows.run.history import read_round_metrics
from models.hf.checkpoint import CARD
from tests.chaos import disk
from tests.chaos.checks import MOVED, Verdict, differences, outcome, repeated
from tests.chaos.events import WATCH, Trap, set_traps, trace, watch_files
from tests.chaos.kills import kill_list
from tests.chaos.school import DATE, School, open_school
from tests.chaos.strike import Reference, _check_the_traps, _starts, strike, undisturbed


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory, prefect_server: None) -> School:
    return open_school(tmp_path_factory.mktemp("chaos") / "tiny", get_current_settings().api.url)


@pytest.fixture(scope="module")
def reference(school: School) -> Reference:
    return undisturbed(school)


@pytest.mark.slow
def test_a_night_survives_a_power_cut(school: School) -> None:
    """In round 2, as its scores are committed. Other victims, and whether the outcome is the same: `make test-full`."""
    scored = f"renamed nights/{DATE}/round-02/score{MOVED}"
    assert str(strike(school, "struck", [Trap(scored, "power")])) == "nothing"
    home = Home(school.root / "struck" / "school")
    assert_learned(home)
    assert "the night was interrupted, and resumed" in (home.night(DATE) / "report.md").read_text()


def assert_learned(home: Home) -> None:
    """Assert that the night refilled, learned and promoted. Otherwise the kills would show nothing."""
    metrics = read_round_metrics(home.night(DATE))
    assert [figures["skipped"] for figures in metrics] == [0, 0, 0]
    assert sum(figures["refills"] for figures in metrics) > 0
    found = outcome(home)
    assert found["decision"] == "promoted"
    assert len(set(found["digests"].values())) == 2
    assert not list(home.night(DATE).rglob("*.draft"))


@pytest.mark.full
def test_the_undisturbed_night(school: School, reference: Reference) -> None:
    assert_learned(Home(school.root / "undisturbed" / "school"))
    assert repeated(reference.events) == []


@pytest.mark.full
def test_a_night_survives_ctrl_c(school: School, reference: Reference) -> None:
    """While the state of round 1 is being written."""
    saving = next(event for _, event in reference.events if re.match(r"rename .*/state/round-01$", event))
    assert str(strike(school, "stopped", [Trap(saving, "ctrl-c")], reference)) == "nothing"
    assert "resume with: nightschool night" in (school.root / "stopped" / "said.log").read_text()


@pytest.mark.full
def test_a_night_survives_the_death_of_its_prefect_server(school: School, reference: Reference) -> None:
    """It loses its server in round 3; at the end another one has all its stages."""
    server = next(event for event in _commits(reference) if event.endswith("/round-03/score/manifest.json"))
    assert str(strike(replace(school, server=None), "serverless", [Trap(server, "server")], reference)) == "nothing"
    with closing(sqlite3.connect(school.root / "serverless" / "school" / "prefect" / "prefect.db")) as database:
        tasks = dict(database.execute("SELECT name, state_name FROM task_run"))
    assert {tasks[name] for name in ("round 3 · credit", "round 3 · update", "decide", "report")} == {"Completed"}


def _commits(reference: Reference) -> list[str]:
    return [event for _, event in reference.events if event.startswith("renamed ") and event.endswith(MOVED)]


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_a_night_survives_every_kill_of_the_list(school: School, reference: Reference) -> None:
    card = Trap(f"rename checkpoints/{reference.outcome['digests']['candidate']}/{CARD}", "flow")
    for number, trap in enumerate([card, *kill_list(reference.events, 40, 7)]):
        assert str(strike(school, f"kill-{number}", [trap], reference)) == "nothing", trap


@pytest.mark.full
def test_the_list_is_seeded_and_has_every_stage(reference: Reference) -> None:
    kills = kill_list(reference.events, 48, 7)
    assert kills == kill_list(reference.events, 48, 7) != kill_list(reference.events, 48, 8)
    assert len(kills) == len(set(kills)) == 48
    assert {trap.victim for trap in kills} == {"all", "flow", "power", "trainer", "engine"}
    stages = {_stage(event) for _, event in reference.events if event.endswith("/manifest.json")}
    assert stages == {_stage(trap.event) for trap in kills if trap.event.endswith("/manifest.json")}
    assert {"sample", "checkpoint", "quiz", "candidate", "decide", "freeze_journal"} <= stages


def _stage(event: str) -> str:
    """Return the stage whose manifest is moved; a cached exam is named by a digest."""
    return re.sub(r"[0-9a-f]{20}", "N", Path(event).parent.name)


# --- the checks can fail


def test_a_stage_that_is_run_again_is_seen() -> None:
    def log(*events: str) -> list[tuple[float, str]]:
        return [(float(n), event) for n, event in enumerate(events)]

    once = ("start", "begin a", "renamed a/manifest.json", "begin b")
    assert repeated(log(*once)) == []
    assert repeated(log(*once, "begin a")) == ["a was run again"]
    assert repeated(log(*once, "start", "begin b"), {"a": ""}) == []
    assert repeated(log(*once, "start", "begin a"), {"a": ""}) == ["a was run again"]
    assert repeated(log("start", "begin a", "start", "begin a"), {}) == []


def test_another_outcome_is_seen() -> None:
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 2}) == []
    assert differences({"a": 1}, {"a": 2, "b": 3}) == ["a is 1, not 2", "b is None, not 3"]


def test_a_trap_that_never_springs_and_a_night_that_ends_with_its_trainer_are_failures(tmp_path: Path) -> None:
    school, home = School(tmp_path, (), None), Home(tmp_path / "school")
    (tmp_path / "events.log").write_text("1.5 start\n")
    assert trace(tmp_path) == [(1.5, "start")]
    verdict, trap = Verdict(), Trap("begin a", "trainer")
    _check_the_traps(school, home, [trap], 0, verdict)
    assert verdict.lost == ["the trap never sprang: trainer killed 0.000 s after 'begin a'"]
    (tmp_path / "sprung-0").touch()
    _check_the_traps(school, home, [trap], 1, verdict)
    assert verdict.lost[1:] == ["the night ended with its trainer: 1"]
    _check_the_traps(school, home, [trap], 0, verdict)
    assert len(verdict.lost) == 2


def test_a_kill_that_the_night_survives_shares_its_start_with_the_next() -> None:
    power, trainer, flow = (Trap("begin a", victim) for victim in ("power", "trainer", "flow"))
    assert list(_starts([power, trainer, flow])) == [[power], [trainer, flow], []]
    assert list(_starts([trainer])) == [[trainer], []]


def test_a_power_cut_takes_what_was_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "school"
    home.mkdir()
    for name in ("fsync", "mkdir", "rename"):
        monkeypatch.setattr(os, name, getattr(os, name))  # restored after the test
    monkeypatch.setattr(disk, "_log", None)
    monkeypatch.setenv(WATCH, str(tmp_path))
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(home))
    set_traps(tmp_path)
    watch_files()
    make_folder(home / "nights" / "2026-01-01")
    write_atomically(home / "nights" / "safe.txt", "safe")
    (home / "written.txt").write_text("x" * 100)
    (home / "made").mkdir()
    (home / "moved.draft").write_text("moved")
    sync(home / "moved.draft")
    (home / "moved.draft").rename(home / "moved.txt")
    assert disk.cut_power(home, tmp_path) == ["made", "moved.txt", "written.txt"]
    assert (home / "nights" / "safe.txt").read_text() == "safe"
    assert (home / "written.txt").read_text() == "x" * 50
    assert [event for _, event in trace(tmp_path)][-2:] == ["rename moved.txt", "renamed moved.txt"]
