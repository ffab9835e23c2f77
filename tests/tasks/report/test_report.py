"""The stage `report`: the line for machines, where the time went, and the order in which a night is finished."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.monitoring.incidents import end_early, note
from tasks.report.page import render
from tasks.report.report import division_of, report, stage_seconds, summarise, wall_seconds
from tasks.stage import MANIFEST, commit
from tests.tasks.doubles.exam import taken_quiz
from tests.tasks.doubles.night import DIGESTS, PARTS, TARGET

Night = tuple[Path, dict[str, Any]]
MODELS = {"champion", "candidate"}


def summary(folder: Path, **changes: Any) -> dict[str, Any]:
    decision = json.loads((folder / "decide" / "decision.json").read_text()) | changes
    return summarise(folder, decision, 3, ["an alarm"], {"mlflow": "http://localhost:5000"})


def test_the_summary_has_the_nights_outcome_and_its_numbers(night: Night) -> None:
    folder, written = night
    found = summary(folder)
    assert json.loads(json.dumps(found)) == found
    assert found.keys() >= written.keys()
    assert (found["night"], found["rounds"], found["alarms"]) == ("2026-11-20", 3, ["an alarm"])
    assert found["digests"] == {role: DIGESTS[role] for role in MODELS} | {"start": DIGESTS["champion"]}
    assert (found["reasons"], found["looks"][0]["problems"]) == (written["reasons"], 400)
    assert found["accuracy"] == found["benchmarks"][TARGET]
    assert found["accuracy"].keys() == MODELS
    assert found["benchmarks"].keys() == PARTS.keys()
    for part, count in PARTS.items():
        for interval in found["benchmarks"][part].values():
            assert interval.keys() == {"accuracy", "low", "high", "n", "counted"}
            assert interval["n"] == count
            assert interval["low"] <= interval["accuracy"] <= interval["high"]
    assert found["report"] == str(folder / "report.html")
    assert (found["ended_early"], found["incidents"]) == (None, [])
    assert [summary(folder, promote=promote)["decision"] for promote in (True, False)] == ["promoted", "kept"]


def test_the_quizzes_are_in_the_order_in_which_they_were_taken(own_night: Night) -> None:
    folder, _ = own_night
    shutil.rmtree(folder / "quiz")
    for at, (name, solved) in enumerate({"start": 10, "distill": 25, "rounds": 30}.items()):
        taken_quiz(folder / "quiz" / name, solved, 40)
        commit(folder / "quiz" / name, "quiz", {}, 3.0)
        os.utime(folder / "quiz" / name / MANIFEST, (at, at))
    assert list(summary(folder)["quizzes"].items()) == [
        ("start", {"accuracy": 0.25, "n": 40}),
        ("distill", {"accuracy": 0.625, "n": 40}),
        ("rounds", {"accuracy": 0.75, "n": 40}),
    ]


def test_incidents_and_an_early_end_are_reported(own_night: Night) -> None:
    folder, _ = own_night
    note(folder, "the engine process died")
    end_early(folder, 3, "there was no time <b>left</b>", 3)
    found = summary(folder)
    assert found["ended_early"] == "there was no time <b>left</b>"
    assert [line[6:] for line in found["incidents"]] == ["the engine process died", "there was no time <b>left</b>"]
    assert "there was no time &lt;b&gt;left&lt;/b&gt;" in render(folder, found)


def test_mlflows_run_is_ended_before_the_night_counts_as_finished(
    own_night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished night is not resumed: killed in between, its run would be ended as a dead night's."""
    folder, _ = own_night
    monkeypatch.setattr("tasks.report.report.show_text", lambda *_: None)
    ended: list[tuple[str, bool]] = []

    def end(status: str) -> None:
        ended.append((status, (folder / "summary.json").exists()))

    tracking: Any = SimpleNamespace(close_run=end, **dict.fromkeys(("log", "log_artifact", "tag"), lambda *_, **__: 0))
    decision = json.loads((folder / "decide" / "decision.json").read_text())
    report.fn(folder, decision, 3, [], {}, tracking)
    assert ended == [("FINISHED", False)]
    assert (folder / "summary.json").exists()


def write_manifest(stage: Path, seconds: float, end: float = 0.0) -> None:
    stage.mkdir(parents=True)
    (stage / "manifest.json").write_text(json.dumps({"seconds": seconds}))
    os.utime(stage / "manifest.json", (end, end))


def test_seconds_are_summed_over_rounds_models_and_repeated_lessons(tmp_path: Path) -> None:
    seconds = {
        "freeze_journal": 0.5,
        "evaluate/champion": 20.0,
        "distill": 30.0,
        "distill-2": 10.0,
        "round-01/sample": 12.0,
        "round-02/sample": 13.0,
        "round-02/refill-1/sample": 2.0,
        "round-01/checkpoint": 6.0,
        "evaluate/candidate": 22.5,
    }
    for end, (path, value) in enumerate(seconds.items()):
        write_manifest(tmp_path / path, value, end)
    figures = tmp_path / "round-01/checkpoint/metrics.json"
    figures.write_text(json.dumps({"seconds_update": 17.254}))
    os.utime(figures, (6.5, 6.5))
    (tmp_path / "round-03/sample").mkdir(parents=True)  # under way
    assert list(stage_seconds(tmp_path).items()) == [  # in the order of the last commits
        ("freeze_journal", 0.5),
        ("distill", 40.0),
        ("sample", 27.0),
        ("update", 17.25),
        ("checkpoint", 6.0),
        ("evaluate", 42.5),
    ]


def test_the_hours_are_divided_by_part_and_counted_by_the_clock(tmp_path: Path) -> None:
    assert division_of(tmp_path) is None
    planned = {"lessons": 210.0, "rounds": 420.0, "exam": 135.0}
    (tmp_path / "division.json").write_text(json.dumps({"hours": 900.0, **planned}))
    for path, seconds, end in (
        ("distill-2", 30.0, 40.0),
        ("fit_reward_model", 5.0, 50.0),
        ("distill_check", 9.0, 59.0),  # in nobody's hours
        ("round-01/sample", 20.0, 80.0),
        ("round-01/checkpoint", 10.0, 130.0),
        ("round-02/sample", 15.0, 136.0),  # began while the checkpoint was saved
        ("quiz/rounds", 4.0, 140.0),
        ("exam/look-1", 11.0, 151.0),
    ):
        write_manifest(tmp_path / path, seconds, end)
    figures = tmp_path / "round-01/checkpoint/metrics.json"
    figures.write_text(json.dumps({"seconds_update": 40.0, "seconds_checkpoint": 10.0}))
    os.utime(figures, (130.0, 130.0))
    found = division_of(tmp_path)
    assert found is not None
    assert found["planned"] == planned
    assert found["real"] == {"lessons": 35.0, "rounds": 20.0 + 40.0 + 16.0 + 4.0, "exam": 11.0}


def test_the_clock_counts_overlapping_stages_once_and_no_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier run was interrupted at 120 s; the present one started at 1000 s and took 200 s so far."""
    now = SimpleNamespace(time=lambda: 1200.0)
    context = SimpleNamespace(start_time=SimpleNamespace(timestamp=lambda: 1000.0))
    monkeypatch.setattr("tasks.report.report.time", now)
    write_manifest(tmp_path / "round-01/checkpoint", seconds=20.0, end=110.0)
    write_manifest(tmp_path / "round-02/sample", seconds=25.0, end=120.0)
    write_manifest(tmp_path / "distill", seconds=50.0, end=80.0)
    write_manifest(tmp_path / "evaluate/candidate", seconds=90.0, end=1150.0)
    monkeypatch.setattr("tasks.report.report.FlowRunContext", SimpleNamespace(get=lambda: None))
    assert wall_seconds(tmp_path) == 90.0 + 30.0 + 50.0
    monkeypatch.setattr("tasks.report.report.FlowRunContext", SimpleNamespace(get=lambda: context))
    assert wall_seconds(tmp_path) == 200.0 + 30.0 + 50.0
