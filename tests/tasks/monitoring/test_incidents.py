"""A night's incidents are kept at once, and read back even where a line was cut off."""

import json
import logging
import re
from pathlib import Path

import pytest

from tasks.monitoring.incidents import EARLY, FILE, EarlyEnd, end_early, ended_early, incidents, note


def test_incidents_are_kept_in_order_with_their_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "nights" / "2026-11-20"
    assert incidents(folder) == []
    with caplog.at_level(logging.WARNING, "nightschool"):
        note(folder, "the engine process died")
        note(folder, "Grüße,\nin zwei Zeilen")
    assert caplog.messages == ["the engine process died", "Grüße,\nin zwei Zeilen"]
    first, second = incidents(folder)
    assert re.fullmatch(r"[0-2]\d:[0-5]\d the engine process died", first)
    assert second.endswith(" Grüße,\nin zwei Zeilen")


def test_a_line_that_was_cut_off_loses_no_other(tmp_path: Path) -> None:
    note(tmp_path, "one")
    file = tmp_path / FILE
    file.write_text(file.read_text() + '{"at": "2026-11-20T03:0')
    note(tmp_path, "two")
    assert [line.split(" ", 1)[1] for line in incidents(tmp_path)] == ["one", "two"]


def test_the_end_of_the_rounds_is_decided_once(tmp_path: Path) -> None:
    assert ended_early(tmp_path) is None
    end_early(tmp_path, 3, "no time was left", 3)
    assert ended_early(tmp_path) == EarlyEnd(3, "no time was left", 3)
    assert [line.split(" ", 1)[1] for line in incidents(tmp_path)] == ["no time was left"]
    kept = {"rounds": 3, "why": "no time was left", "steps": 3, "died": False}
    assert json.loads((tmp_path / EARLY).read_text()) == kept
