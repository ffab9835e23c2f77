"""The report's history: which nights are in it, what its curve says, and where it leads."""

import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tasks.report.history import PastNight, curve, past_nights
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tests.tasks.night_folder import TARGET, write_night


def interval(accuracy: float) -> dict[str, float]:
    return {"accuracy": accuracy, "low": accuracy - 0.05, "high": accuracy + 0.05, "n": 400}


def finish(
    nights: Path, date: str, champion: float, candidate: float, promoted: bool, *, name: str = "starter", **other: Any
) -> None:
    """A night of the past, of which only configuration, summary and report are left."""
    (nights / date).mkdir(parents=True)
    (nights / date / "config.yaml").write_text(f"# frozen\nname: {name}\nseed: 1\n")
    found = {"night": date, "decision": "promoted" if promoted else "kept", "target": TARGET}
    found["accuracy"] = {"champion": interval(champion), "candidate": interval(candidate)}
    (nights / date / "summary.json").write_text(json.dumps(found | other))
    (nights / date / "report.html").write_text("<html>")


def three_nights(nights: Path) -> tuple[Path, dict[str, Any]]:
    """Two of the past, the second kept its champion; and tonight, whose summary is not written yet."""
    finish(nights, "2026-11-18", 0.1, 0.3, True)
    finish(nights, "2026-11-19", 0.3, 0.2, False)
    summary = write_night(nights / "2026-11-20")
    summary["accuracy"] = {"champion": interval(0.3), "candidate": interval(0.5)}
    return nights / "2026-11-20", summary


def test_the_nights_are_told_in_order_and_tonights_is_the_last(tmp_path: Path) -> None:
    night, summary = three_nights(tmp_path)
    found = past_nights(night, summary)
    assert found == [
        PastNight("2026-11-18", True, 0.1, 0.3, 0.3 - 0.05, 0.3 + 0.05, "../2026-11-18/report.html"),
        PastNight("2026-11-19", False, 0.3, 0.2, 0.2 - 0.05, 0.2 + 0.05, "../2026-11-19/report.html"),
        PastNight("2026-11-20", True, 0.3, 0.5, 0.5 - 0.05, 0.5 + 0.05, None),
    ]
    assert [one.serving for one in found] == [0.3, 0.3, 0.5]
    assert found[1].told == ("19 November 2026", "candidate 0.200, not promoted", "champion 0.300")


def test_other_students_other_exams_later_and_broken_nights_are_left_out(tmp_path: Path) -> None:
    night, summary = three_nights(tmp_path)
    finish(tmp_path, "2026-11-10", 0.9, 0.9, True, name="nightly")
    finish(tmp_path, "2026-11-11", 0.9, 0.9, True, target="gsm8k")
    finish(tmp_path, "2026-11-12", 0.9, 0.9, True, accuracy={})
    finish(tmp_path, "2026-11-21", 0.9, 0.9, True)
    finish(tmp_path, "2026-11-13", 0.9, 0.9, True)
    (tmp_path / "2026-11-13" / "summary.json").write_text("{")
    finish(tmp_path, "2026-11-14", 0.9, 0.9, True)
    (tmp_path / "2026-11-14" / "summary.json").unlink()
    finish(tmp_path, "2026-11-15", 0.4, 0.4, False)
    (tmp_path / "2026-11-15" / "report.html").unlink()
    found = past_nights(night, summary)
    assert [one.date for one in found] == ["2026-11-15", "2026-11-18", "2026-11-19", "2026-11-20"]
    assert found[0].link is None


def test_the_curve_leads_to_each_report_and_rises_where_one_was_promoted(tmp_path: Path) -> None:
    night, summary = three_nights(tmp_path)
    drawn = curve(past_nights(night, summary), TARGET)
    assert "2 promotions in 3 nights." in drawn.caption
    assert re.findall(r'<a class="reading" href="(.*?)"', drawn.svg) == [
        f"../2026-11-{day}/report.html" for day in (18, 19)
    ]
    assert 'role="group"' in drawn.svg[:200]  # what has links is no image
    assert 'aria-label="19 November 2026, candidate 0.200, not promoted, champion 0.300"' in drawn.svg
    line = max(re.findall(r'd="(M [^"]*)"', drawn.svg), key=lambda path: path.count("L"))
    heights = [float(height) for height in re.findall(r"[ML] \S+ (\S+)", line)]
    was, promoted, kept, kept_still, then, now = (round(heights[0] - height, 3) for height in heights)
    assert was == 0 < promoted == kept == kept_still == then
    assert now == pytest.approx(2 * promoted, abs=0.01)


def test_the_page_has_a_history_from_the_second_night_on(tmp_path: Path) -> None:
    night, summary = three_nights(tmp_path)
    page = render(night, summary)
    assert "All nights so far" in page
    assert re.findall(r'<th scope="row"><a href="(.*?)">2026-11-(\d\d)</a><small>(.*?)</small>', page) == [
        ("../2026-11-19/report.html", "19", "not promoted"),
        ("../2026-11-18/report.html", "18", "promoted"),
    ]
    assert ">−0.10</td>" in page
    alone = tmp_path / "elsewhere" / "2026-11-20"
    assert "All nights so far" not in render(alone, write_night(alone))
    assert past_nights(alone, {"night": "2026-11-20", "target": "", "benchmarks": {}}) == []


MOVES = [
    {"at": "2026-11-19T07:15:00.000Z", "version": "1", "by": "rollback"},
    {"at": "2026-11-19T07:16:00.000Z", "version": "3", "by": "rollback"},
    {"at": "2026-11-20T08:00:00.000Z", "version": "1", "by": "promote"},
]


def test_what_the_owner_moved_stands_between_the_nights(tmp_path: Path) -> None:
    """Each summary holds all moves up to then; a night shows those that the one before did not know."""
    night, summary = three_nights(tmp_path)
    for date, count in (("2026-11-18", 0), ("2026-11-19", 2)):
        file = tmp_path / date / "summary.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"by_hand": MOVES[:count]}))
    summary |= {"by_hand": MOVES, "accuracy": {"champion": interval(0.1), "candidate": interval(0.5)}}
    found = past_nights(night, summary)
    assert [len(one.by_hand) for one in found] == [0, 2, 1]
    (last,) = found[-1].by_hand
    assert last.startswith("promote to version 1, ")
    assert last.endswith(f"{datetime.fromisoformat(MOVES[2]['at']).astimezone():%B %Y, %H:%M}")
    drawn = curve(found, TARGET)
    line = max(re.findall(r'd="(M [^"]*)"', drawn.svg), key=lambda path: path.count("L"))
    heights = [float(height) for height in re.findall(r"[ML] \S+ (\S+)", line)]
    assert len(heights) == 10  # two of each night, and two of each gap in which something was moved
    assert heights[-4] == heights[-5]  # who served after the night before, up to the move
    assert heights[-3] == heights[-2] == heights[0]  # and from then on the first one again
    assert last in drawn.svg
    assert last in render(night, summary)
    assert f"- By hand since the night before: {last}.\n" in render_markdown(summary, {}, found[-1].by_hand)


def test_a_move_by_hand_is_told_once_whatever_the_exam_was(tmp_path: Path) -> None:
    """Each summary has all moves up to then, also those of nights with another target, or finished late."""
    moves = [{"at": f"2026-11-{day}T12:00:00+00:00", "by": "rollback", "version": "1"} for day in (10, 11)]
    finish(tmp_path, "2026-11-17", 0.1, 0.3, True, target="gsm8k", by_hand=moves[:1])
    night, summary = three_nights(tmp_path)
    found = past_nights(night, summary | {"by_hand": moves})
    assert [len(one.by_hand) for one in found] == [0, 0, 1]
    assert "11 November 2026" in found[-1].by_hand[0]


def test_a_move_around_a_night_of_another_target_stands_before_the_next_one(tmp_path: Path) -> None:
    moves = [{"at": "2026-11-18T12:00:00+00:00", "by": "rollback", "version": "1"}]
    night, summary = three_nights(tmp_path)
    shutil.rmtree(tmp_path / "2026-11-19")
    finish(tmp_path, "2026-11-19", 0.1, 0.3, True, target="gsm8k", by_hand=moves)
    found = past_nights(night, summary | {"by_hand": moves})
    assert [(one.date, len(one.by_hand)) for one in found] == [("2026-11-18", 0), ("2026-11-20", 1)]
