"""The stage `report`: the line for machines, where the time went, and the order in which a night is finished."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conf.load import STARTER
from tasks.monitoring.incidents import end_early, note
from tasks.report.page import render
from tasks.report.report import division_of, report, stage_seconds, summarise, wall_seconds, way_back
from tasks.stage import MANIFEST
from tests.tasks.doubles.exam import taken_quiz
from tests.tasks.doubles.night import DIGESTS, PARTS, TARGET, Night

MODELS = {"champion", "candidate"}
STAGES = [  # path, seconds, and when it ended
    ("quiz/start", 0.25, 0.4),  # in nobody's hours: they are divided afterwards
    ("freeze_journal", 0.5, 1.0),
    ("distill", 30.0, 40.0),
    ("distill-2", 10.0, 51.0),
    ("distill-2_check", 9.0, 60.0),  # in nobody's hours
    ("ask_teacher-2", 1.0, 61.0),
    ("self_distill_answers", 1.0, 62.0),
    ("round-01/play-1", 4.0, 72.0),
    ("round-01/play-2", 3.0, 75.0),
    ("round-01/sample", 5.0, 80.0),
    ("round-01/checkpoint", 6.0, 104.0),
    ("round-02/sample", 13.0, 112.0),  # began while the checkpoint was saved
    ("round-02/refill-1/sample", 2.0, 114.0),
    ("quiz/rounds", 4.0, 118.0),
    ("exam/look-1", 1.0, 119.0),
    ("evaluate/champion", 20.0, 140.0),
]


def summary(folder: Path, **changes: Any) -> dict[str, Any]:
    decision = json.loads((folder / "decide" / "decision.json").read_text()) | changes
    return summarise(folder, decision, 3, ["an alarm"], {"mlflow": "http://localhost:5000"})


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    """A night with these stages, an update of 17 s before the checkpoint, and a stage under way."""
    for path, seconds, end in STAGES:
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / MANIFEST).write_text(json.dumps({"seconds": seconds}))
        os.utime(tmp_path / path / MANIFEST, (end, end))
    figures = tmp_path / "round-01/checkpoint/metrics.json"
    figures.write_text(json.dumps({"seconds_update": 17.254, "seconds_checkpoint": 6.0}))
    os.utime(figures, (104.0, 104.0))
    (tmp_path / "round-03/sample").mkdir(parents=True)
    return tmp_path


def test_the_summary_has_the_nights_outcome_and_its_numbers(night: Night) -> None:
    folder, written = night
    found = summary(folder)
    assert json.loads(json.dumps(found)) == found
    assert found.keys() >= written.keys()
    assert (found["night"], found["rounds"], found["alarms"]) == ("2026-11-20", 3, ["an alarm"])
    assert found["digests"] == {role: DIGESTS[role] for role in MODELS} | {"start": DIGESTS["champion"]}
    assert (found["reasons"], found["looks"][0]["problems"]) == (written["reasons"], 400)
    assert found["accuracy"] == found["benchmarks"][TARGET]
    assert found["benchmarks"].keys() == PARTS.keys()
    for part, count in PARTS.items():
        assert found["benchmarks"][part].keys() == MODELS
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
        os.utime(folder / "quiz" / name / MANIFEST, (at, at))
    quizzes = [("start", 0.25), ("distill", 0.625), ("rounds", 0.75)]
    assert list(summary(folder)["quizzes"].items()) == [(name, {"accuracy": share, "n": 40}) for name, share in quizzes]


def test_incidents_and_an_early_end_are_reported(own_night: Night) -> None:
    folder, _ = own_night
    note(folder, "the engine process died")
    end_early(folder, 3, "there was no time <b>left</b>", 3)
    found = summary(folder)
    assert found["ended_early"] == "there was no time <b>left</b>"
    assert [line[6:] for line in found["incidents"]] == ["the engine process died", "there was no time <b>left</b>"]
    assert "there was no time &lt;b&gt;left&lt;/b&gt;" in render(folder, found)


def test_mlflows_run_is_ended_before_the_night_counts_as_finished(
    own_night: Night, decision: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished night is not resumed: killed in between, its run would be ended as a dead night's."""
    folder, _ = own_night
    monkeypatch.setattr("tasks.report.report.show_text", lambda *_: None)
    ended: list[tuple[str, bool]] = []

    def end(status: str) -> None:
        ended.append((status, (folder / "summary.json").exists()))

    tracking: Any = SimpleNamespace(close_run=end, **dict.fromkeys(("log", "log_artifact", "tag"), lambda *_, **__: 0))
    report.fn(folder, decision, 3, [], {}, tracking)
    assert ended == [("FINISHED", False)]
    assert (folder / "summary.json").exists()


def test_seconds_are_summed_over_rounds_models_and_repeated_lessons(timed: Path) -> None:
    assert list(stage_seconds(timed).items()) == [  # in the order of the last commits
        *(("freeze_journal", 0.5), ("distill", 40.0), ("distill_check", 9.0), ("ask_teacher", 1.0)),
        *(("self_distill_answers", 1.0), ("play", 7.0), ("update", 17.25), ("checkpoint", 6.0), ("sample", 20.0)),
        *(("quiz", 4.25), ("exam", 1.0), ("evaluate", 20.0)),
    ]


def test_the_hours_are_divided_by_part_and_counted_by_the_clock(timed: Path) -> None:
    assert division_of(timed) is None
    planned = {"lessons": 210.0, "rounds": 420.0, "exam": 135.0}
    (timed / "division.json").write_text(json.dumps({"hours": 900.0, **planned}))
    found = division_of(timed)
    assert found is not None
    assert found["planned"] == planned
    assert found["real"] == pytest.approx({"lessons": 42.0, "rounds": 12.0 + 17.254 + 20.0, "exam": 21.0})


def test_the_clock_counts_overlapping_stages_once_and_no_pause(timed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The night was interrupted at 118 s; its present run started at 118.5 s and has taken 60 s so far."""
    monkeypatch.setattr("tasks.report.report.time", SimpleNamespace(time=lambda: 178.5))
    earlier = 0.25 + 0.5 + 40.0 + 9.0 + 2.0 + 12.0 + 17.254 + 20.0
    monkeypatch.setattr("tasks.report.report.FlowRunContext", SimpleNamespace(get=lambda: None))
    assert wall_seconds(timed) == pytest.approx(earlier + 21.0)
    context = SimpleNamespace(start_time=SimpleNamespace(timestamp=lambda: 118.5))
    monkeypatch.setattr("tasks.report.report.FlowRunContext", SimpleNamespace(get=lambda: context))
    assert wall_seconds(timed) == pytest.approx(earlier + 0.5 + 60.0)


@pytest.mark.parametrize(("own", "named"), [(None, False), ("name: starter", False), ("name: another", True)])
def test_the_way_back_names_the_nights_configuration_only_if_the_homes_is_another_models(
    tmp_path: Path, own: str | None, named: bool
) -> None:
    folder = tmp_path / "nights" / "2026-11-20"
    folder.mkdir(parents=True)
    shutil.copy(STARTER, folder / "config.yaml")
    if own is not None:
        (tmp_path / "config.yaml").write_text(STARTER.read_text().replace("name: starter", own))
    assert way_back(folder) == "nightschool rollback" + f" --config {folder / 'config.yaml'}" * named
