"""The report's history: which nights are in it, what its curve says, and where it links to."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tasks.report.history import PastNight, history_curve, past_nights
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tests.tasks.doubles.night import TARGET, interval, write_config, write_past_night

Night = tuple[Path, dict[str, Any]]

MOVES = [
    {"at": "2026-11-19T07:15:00.000Z", "version": "1", "by": "rollback"},
    {"at": "2026-11-19T07:16:00.000Z", "version": "3", "by": "rollback"},
    {"at": "2026-11-20T08:00:00.000Z", "version": "1", "by": "promote"},
]


def heights(svg: str) -> list[float]:
    """The heights of the points of the longest line, above its first one."""
    line = max(re.findall(r'd="(M [^"]*)"', svg), key=lambda path: path.count("L"))
    found = [float(height) for height in re.findall(r"[ML] \S+ (\S+)", line)]
    return [round(found[0] - height, 3) for height in found]


def test_nights_come_in_order_and_tonight_is_the_last(three_nights: Night) -> None:
    found = past_nights(*three_nights)
    assert found == [
        PastNight("2026-11-18", True, 0.1, 0.3, 0.3 - 0.05, 0.3 + 0.05, "../2026-11-18/report.html"),
        PastNight("2026-11-19", False, 0.3, 0.2, 0.2 - 0.05, 0.2 + 0.05, "../2026-11-19/report.html"),
        PastNight("2026-11-20", True, 0.3, 0.5, 0.5 - 0.05, 0.5 + 0.05, None),
    ]
    assert [night.serving for night in found] == [0.3, 0.3, 0.5]
    assert found[1].reading == ("19 November 2026", "candidate 20.0 %, not promoted", "champion 30.0 %")


def test_other_students_other_targets_later_and_unfinished_nights_are_left_out(three_nights: Night) -> None:
    home = three_nights[0].parent
    write_past_night(home / "2026-11-10", 0.9, 0.9, promoted=True)
    write_config(home / "2026-11-10", "name=another")
    write_past_night(home / "2026-11-11", 0.9, 0.9, promoted=True, target="gsm8k")
    write_past_night(home / "2026-11-14", 0.9, 0.9, promoted=True)
    (home / "2026-11-14" / "summary.json").unlink()
    write_past_night(home / "2026-11-21", 0.9, 0.9, promoted=True)
    assert [night.date for night in past_nights(*three_nights)] == ["2026-11-18", "2026-11-19", "2026-11-20"]


def test_the_curve_links_to_each_report_and_rises_with_a_promotion(three_nights: Night) -> None:
    drawn = history_curve(past_nights(*three_nights), TARGET)
    assert "2 promotions in 3 nights." in drawn.caption
    assert re.findall(r'<a class="reading" href="(.*?)"', drawn.svg) == [
        f"../2026-11-{day}/report.html" for day in (18, 19)
    ]
    assert 'role="group"' in drawn.svg[:200]  # what has links is no image
    assert 'aria-label="19 November 2026, candidate 20.0 %, not promoted, champion 30.0 %"' in drawn.svg
    first, promoted, kept, still_kept, before, now = heights(drawn.svg)
    assert first == 0 < promoted == kept == still_kept == before
    assert now == pytest.approx(2 * promoted, abs=0.01)


def test_the_page_has_a_history_from_the_second_night_on(three_nights: Night, page: str) -> None:
    assert "All nights so far" not in page
    later = render(*three_nights)
    assert "All nights so far" in later
    assert re.findall(r'<th scope="row"><a href="(.*?)">2026-11-(\d\d)</a><small>(.*?)</small>', later) == [
        ("../2026-11-19/report.html", "19", "not promoted"),
        ("../2026-11-18/report.html", "18", "promoted"),
    ]
    assert ">−0.10</td>" in later


def test_a_move_by_hand_is_shown_once_between_the_nights(three_nights: Night) -> None:
    """Each summary repeats all moves before it."""
    night, summary = three_nights
    for date, count in (("2026-11-18", 0), ("2026-11-19", 2)):
        file = night.parent / date / "summary.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"by_hand": MOVES[:count]}))
    summary |= {"by_hand": MOVES, "accuracy": {"champion": interval(0.1), "candidate": interval(0.5)}}
    found = past_nights(night, summary)
    assert [len(past.by_hand) for past in found] == [0, 2, 1]
    (last,) = found[-1].by_hand
    assert last.startswith("promote to version 1, ")
    assert last.endswith(f"{datetime.fromisoformat(MOVES[2]['at']).astimezone():%B %Y, %H:%M}")
    assert last in render(night, summary)
    decision = json.loads((night / "decide" / "decision.json").read_text())
    short = render_markdown(json.loads(json.dumps(summary)), decision, found[-1].by_hand)
    assert f"- By hand since the night before: {last}.\n" in short
