"""The report's history: which nights are in it, where it links to, and what you moved by hand between them."""

import json
from datetime import datetime
from typing import Any

from tasks.report.history import PastNight, past_nights
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tests.tasks.doubles.night import Night, interval, write_config, write_past_night

MOVES = [
    {"at": "2026-11-19T07:15:00.000Z", "version": "1", "by": "rollback"},
    {"at": "2026-11-19T07:16:00.000Z", "version": "3", "by": "rollback"},
    {"at": "2026-11-20T08:00:00.000Z", "version": "1", "by": "promote"},
]
EARLIER = {"at": "2026-11-17T07:00:00.000Z", "version": "2", "by": "promote"}


def test_nights_come_in_order_and_others_are_left_out(three_nights: Night) -> None:
    """Other students', those of other targets, later ones and unfinished ones."""
    home = three_nights[0].parent
    write_past_night(home / "2026-11-10", 0.9, 0.9, promoted=True)
    write_config(home / "2026-11-10", "name=another")
    write_past_night(home / "2026-11-11", 0.9, 0.9, promoted=True, target="gsm8k")
    write_past_night(home / "2026-11-14", 0.9, 0.9, promoted=True)
    (home / "2026-11-14" / "summary.json").unlink()
    write_past_night(home / "2026-11-21", 0.9, 0.9, promoted=True)
    found = past_nights(*three_nights)
    assert found == [
        PastNight("2026-11-18", True, 0.1, 0.3, 0.3 - 0.05, 0.3 + 0.05, "../2026-11-18/report.html"),
        PastNight("2026-11-19", False, 0.3, 0.2, 0.2 - 0.05, 0.2 + 0.05, "../2026-11-19/report.html"),
        PastNight("2026-11-20", True, 0.3, 0.5, 0.5 - 0.05, 0.5 + 0.05, None),
    ]
    assert [night.serving for night in found] == [0.3, 0.3, 0.5]


def test_a_move_by_hand_is_shown_once_between_the_nights(three_nights: Night, decision: dict[str, Any]) -> None:
    """Each summary repeats all moves before it, also those of nights with another target."""
    night, summary = three_nights
    for date, count in (("2026-11-18", 0), ("2026-11-19", 2)):
        file = night.parent / date / "summary.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"by_hand": MOVES[:count]}))
    summary |= {"by_hand": MOVES, "accuracy": {"champion": interval(0.1), "candidate": interval(0.5)}}
    write_past_night(night.parent / "2026-11-17", 0.9, 0.9, promoted=True, target="gsm8k", by_hand=[EARLIER])
    found = past_nights(night, summary | {"by_hand": [EARLIER, *MOVES]})
    assert [len(past.by_hand) for past in found] == [0, 2, 1]
    (last,) = found[-1].by_hand
    assert last == f"promote to version 1, {datetime.fromisoformat(MOVES[2]['at']).astimezone():%-d %B %Y, %H:%M}"
    assert last in render(night, summary)
    assert f"- By hand since the night before: {last}.\n" in render_markdown(summary, decision, found[-1].by_hand)
