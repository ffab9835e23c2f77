"""A seeded selection of the kill list (`python -m tests.chaos` runs the whole of it), and that its checks can fail."""

import os
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from prefect.settings import get_current_settings

from conf.storage.durable import make_folder, sync, write_atomically
from conf.storage.home import Home
from flows.run.history import round_metrics
from models.checkpoint import CARD, keep, write_lineage
from tests.chaos import disk
from tests.chaos.checks import Verdict, aliases, broken_aliases, differences, repeated
from tests.chaos.events import WATCH, Trap, set_traps, trace, watch_files
from tests.chaos.graph import night_graph
from tests.chaos.kills import kill_list
from tests.chaos.school import DATE, NAME, School, open_school, processes_of
from tests.chaos.strike import Reference, _check_the_traps, _starts, strike, undisturbed
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.registry import School as Registered


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory, prefect_server: Path) -> School:
    return open_school(tmp_path_factory.mktemp("chaos") / "tiny", get_current_settings().api.url)


@pytest.fixture(scope="module")
def reference(school: School) -> Reference:
    return undisturbed(school)


def test_the_undisturbed_night_refills_learns_and_promotes(school: School, reference: Reference) -> None:
    """Otherwise the kills would show nothing."""
    night = Home(school.root / "undisturbed" / "school").night(DATE)
    metrics = round_metrics(night)
    assert [figures["skipped"] for figures in metrics] == [0, 0, 0]
    assert sum(figures["refills"] for figures in metrics) > 0
    assert reference.outcome["decision"] == "promoted"
    assert len(set(reference.outcome["digests"].values())) == 3
    assert repeated(reference.events) == []
    assert not list(night.rglob("*.draft"))


def test_prefect_draws_the_whole_night(school: School, reference: Reference) -> None:
    """Every run comes after the journal or the champion's import, and the report after every run."""
    assert school.server is not None
    graph = night_graph(school.server, f"{NAME} {DATE}")
    first = {"enroll", "freeze journal"}
    after = set.union(*(graph.reachable(name) for name in first))
    assert after | first == graph.edges.keys()
    assert {name for name in graph.edges if "report" in graph.reachable(name)} == graph.edges.keys() - {"report"}
    lessons = ["freeze journal", "distill", "lessons", "round 1"]
    rounds = ["round 1", "round 2", "round 3", "evaluate · candidate", "decide", "promote"]
    for spine in (lessons, rounds):
        assert all(later in graph.edges[name] for name, later in pairwise(spine))
    assert {"round 1", "round 2", "round 3"} <= set(graph.top)
    inside = {name for name in graph.edges if name.startswith("round 2 > ")}
    stages = {name.rpartition(" · ")[2] for name in inside}
    assert stages >= {"select prompts", "sample", "score", "credit", "update", "checkpoint", "quiz"}
    assert "round 2 > round 2 · checkpoint" in graph.edges["round 2 > round 2 · update"]


def test_a_seeded_selection_of_kills(school: School, reference: Reference) -> None:
    """One night, whose power is cut in its first round, whose trainer is killed in its third, and which is killed
    itself between the draft of the candidate's card and the card.
    """
    stages = [event for _, event in reference.events if event.startswith("renamed ") and "/round-01/" in event]
    power = random.Random(7).choice([event for event in stages if event.endswith("manifest.json")])
    update = [event for _, event in reference.events if event.startswith("trainer update")][2]
    card = f"rename checkpoints/{reference.outcome['digests']['candidate']}/{CARD}"
    traps = [Trap(power, "power"), Trap(update, "trainer"), Trap(card, "flow")]
    assert str(strike(school, "selection", traps, reference)) == "nothing"


def test_a_night_outlives_its_prefect_server(school: School, reference: Reference) -> None:
    """Its own is killed in the first round; at the end another is started and shows all stages."""
    own = replace(school, server=None)
    event = next(event for _, event in reference.events if event.endswith("/round-01/score/manifest.json"))
    assert str(strike(own, "server", [Trap(event, "server")], reference)) == "nothing"
    with sqlite3.connect(school.root / "server" / "school" / "prefect" / "prefect.db") as database:
        tasks = dict(database.execute("SELECT name, state_name FROM task_run"))
    assert tasks["round 1 · sample"] == tasks["round 3 · update"] == tasks["decide"] == "Completed"


def test_the_list_is_seeded_and_has_every_stage(reference: Reference) -> None:
    kills = kill_list(reference.events, 40, 7)
    assert kills == kill_list(reference.events, 40, 7) != kill_list(reference.events, 40, 8)
    assert len(kills) == len(set(kills)) == 40
    assert {trap.victim for trap in kills} == {"all", "flow", "power", "trainer", "engine"}
    stages = {_stage(event) for _, event in reference.events if event.endswith("/manifest.json")}
    assert stages == {_stage(trap.event) for trap in kills if trap.event.endswith("/manifest.json")}
    assert {"sample", "checkpoint", "quiz", "candidate", "decide", "freeze_journal"} <= stages


def _stage(event: str) -> str:
    """The stage whose manifest is moved; a kept exam is named by a digest."""
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


def test_who_is_left_behind_is_seen(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(command, env=os.environ | {"NIGHTSCHOOL_HOME": str(tmp_path)}) as orphan:
        assert "time.sleep(600)" in processes_of(Home(tmp_path), 0)[0]
        assert processes_of(Home(tmp_path.parent), 0) == []
        orphan.kill()
    assert processes_of(Home(tmp_path), 2) == []


def test_an_alias_of_a_damaged_checkpoint_is_seen(home_with_mlflow: Callable[[str], Home]) -> None:
    registered = Registered(home := home_with_mlflow("school"))
    registered.registry.model = NAME
    draft = write_tiny(home.checkpoints / "draft")
    write_lineage(draft, None)
    registered.checkpoints[0] = serving = keep(draft, home.checkpoints)
    registered.registry.promote(registered.register(0).version)
    assert (aliases(home), broken_aliases(home)) == ({"daytime": serving.name}, [])
    (serving / "config.json").write_text("{}")
    assert broken_aliases(home) == [f"daytime names {serving.name}, which is not whole"]


def test_a_power_cut_takes_what_was_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "school"
    home.mkdir()
    for name in ("fsync", "mkdir", "rename"):
        monkeypatch.setattr(os, name, getattr(os, name))  # put back after the test
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
