"""Alarms on the whole night: kinds never solved or forgotten, and too little disk space."""

from collections.abc import Mapping
from math import nan
from pathlib import Path

import pandas as pd
import pytest

from tasks.monitoring.alarms import Alarm, bytes_of_a_round, disk_alarms, kind_alarms

GB = 10**9
Rates = Mapping[str, tuple[int, float, float]]  # by kind: answers, the share solved in the last third, and the best


def alarms(rates: Rates) -> list[Alarm]:
    return kind_alarms(pd.DataFrame.from_dict(rates, orient="index", columns=["answers", "last", "best"]))


def test_a_kind_that_was_solved_and_then_no_more() -> None:
    said = "Kinds solved during the night but hardly ever at its end: 2/compare (25 %, then 1 %)."
    assert alarms({"2/compare": (60, 0.01, 0.25)}) == [Alarm("forgotten_kinds", False, said)]


def test_kinds_that_were_never_solved() -> None:
    (alarm,) = alarms({"a": (18, 0.0, 0.01), "b": (29, 0.015, 0.015), "c": (18, 0.5, 0.5)})
    assert (alarm.name, alarm.severe, alarm.round) == ("unsolved_kinds", False, None)
    assert alarm.sentence == "Kinds hardly ever solved all night (a longer lesson or hints would help): a, b."


@pytest.mark.parametrize(
    "rates",
    [
        {},
        {"a": (40, 0.05, 0.25)},  # still solved sometimes
        {"a": (40, 0.0, 0.1)},  # never could
        {"a": (7, 0.0, 1.0)},  # seven tries may be luck
        {"a": (20, nan, 0.5)},  # not drawn at the end
        {"a": (40, 0.5, 0.5)},  # learned, not forgotten
    ],
)
def test_no_alarm_without_reason(rates: Rates) -> None:
    assert alarms(rates) == []


@pytest.mark.parametrize(("room", "severe"), [(8 * GB, None), (8 * GB - 1, False), (4 * GB, False), (4 * GB - 1, True)])
def test_both_sides_of_the_thresholds_of_disk_space(room: int, severe: bool | None) -> None:
    found = disk_alarms(room, 2 * GB, 4)
    assert [(alarm.name, alarm.severe, alarm.round) for alarm in found] == (
        [] if severe is None else [("disk_short", severe, 4)]
    )


def test_a_round_writes_as_much_as_the_last_one(tmp_path: Path) -> None:
    checkpoint, state = tmp_path / "cafe42", tmp_path / "round-01"
    checkpoint.mkdir()
    (checkpoint / "model.safetensors").write_bytes(b"x" * 1000)
    assert bytes_of_a_round(checkpoint, state) == 7000  # no state was written yet
    state.mkdir()
    (state / "optimizer.safetensors").write_bytes(b"x" * 500)
    assert bytes_of_a_round(checkpoint, state) == 1500
    assert bytes_of_a_round(tmp_path / "long gone", tmp_path / "round-09") == 0
