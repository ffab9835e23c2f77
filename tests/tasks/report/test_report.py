"""The line for machines, where the time went, and files that are never seen half-written."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conf.storage.durable import DiskFullError, write_atomically
from tasks.incidents import EARLY, FILE, end_early, note
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tasks.report.report import report, stage_seconds, summarise
from tests.tasks.night_folder import DIGESTS, PARTS, TARGET, write_night


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights") / "2026-11-20"
    write_night(folder)
    return folder


def summary(folder: Path, **changes: Any) -> dict[str, Any]:
    decision = json.loads((folder / "decide" / "decision.json").read_text()) | {"target": TARGET} | changes
    return summarise(folder, decision, 3, ["an alarm"], {"mlflow": "http://localhost:5000"})


def test_the_summary_is_what_the_design_says(night: Path) -> None:
    found = summary(night)
    assert json.loads(json.dumps(found)) == found
    assert found["night"] == "2026-11-20"
    assert found["decision"] in ("promoted", "kept")
    assert found["reasons"]
    assert found["rounds"] == 3
    assert found["alarms"] == ["an alarm"]
    assert found["digests"] == DIGESTS
    assert found["benchmarks"].keys() == PARTS.keys()
    assert found["accuracy"] == found["benchmarks"][TARGET]
    assert found["accuracy"].keys() == DIGESTS.keys()
    for part, count in PARTS.items():
        for interval in found["benchmarks"][part].values():
            assert interval.keys() == {"accuracy", "low", "high", "n"}
            assert interval["n"] == count
            assert interval["low"] <= interval["accuracy"] <= interval["high"]
    assert found["report"] == str(night / "report.html")


def test_what_befell_the_night_is_told(night: Path) -> None:
    assert (summary(night)["ended_early"], summary(night)["incidents"]) == (None, [])
    try:
        note(night, "the engine process died")
        end_early(night, 3, "there was no time <b>left</b>", 3)
        found = summary(night)
        page = render(night, found)
    finally:
        (night / EARLY).unlink()
        (night / FILE).unlink()
    assert found["ended_early"] == "there was no time <b>left</b>"
    assert [line[6:] for line in found["incidents"]] == ["the engine process died", "there was no time <b>left</b>"]
    assert "there was no time &lt;b&gt;left&lt;/b&gt;" in page
    told = render_markdown(found)
    assert "the engine process died\n" in told
    assert "there was no time \\<b>left\\</b>" in told


def test_the_run_is_ended_before_the_night_counts_as_finished(night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody goes on with a finished night: killed in between, its run would be ended as a dead night's."""
    monkeypatch.setattr(report, "show_text", lambda *_: None)
    ended: list[tuple[str, bool]] = []
    silent = dict.fromkeys(("log", "log_artifact", "tag"), lambda *_, **__: None)

    def end(status: str) -> None:
        ended.append((status, (night / "summary.json").exists()))

    decision = json.loads((night / "decide" / "decision.json").read_text()) | {"target": TARGET}
    try:
        report.report.fn(night, decision, 3, [], {}, SimpleNamespace(**silent, close_run=end))  # pyright: ignore
    finally:
        (night / "summary.json").unlink()
    assert ended == [("FINISHED", False)]


@pytest.mark.parametrize(("promote", "said"), [(True, "promoted"), (False, "kept")])
def test_the_decision_in_a_word(night: Path, promote: bool, said: str) -> None:
    assert summary(night, promote=promote)["decision"] == said


def test_seconds_are_summed_over_rounds_and_sitters(tmp_path: Path) -> None:
    seconds = {
        "freeze_journal": 0.5,
        "evaluate/champion": 20.0,
        "evaluate/candidate": 22.5,
        "round-01/sample": 12.0,
        "round-02/sample": 13.0,
        "round-02/refill-1/sample": 2.0,
        "round-02/quiz": 4.0,
        "round-01/checkpoint": 6.0,
    }
    for place, value in seconds.items():
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "manifest.json").write_text(json.dumps({"seconds": value}))
    (tmp_path / "round-01/checkpoint/metrics.json").write_text(json.dumps({"seconds_update": 17.254}))
    (tmp_path / "round-03/sample").mkdir(parents=True)  # under way
    assert stage_seconds(tmp_path) == {
        "freeze_journal": 0.5,
        "evaluate": 42.5,
        "sample": 27.0,
        "quiz": 4.0,
        "checkpoint": 6.0,
        "update": 17.25,
    }


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "summary.json"
    write_atomically(file, "old ü")
    assert file.read_text(encoding="utf-8") == "old ü"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DiskFullError, match="summary.json.draft: the disk is full"):
            write_atomically(file, "new")
    assert file.read_text(encoding="utf-8") == "old ü"
    write_atomically(file, "new")
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]
