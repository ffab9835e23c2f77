"""Alarms on the whole night: kinds never solved or forgotten."""

from collections.abc import Mapping
from math import nan

import pandas as pd
import pytest

from tasks.monitoring.alarms import Alarm, kind_alarms

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
