"""Alarms on the whole night: kinds never solved or forgotten."""

import pytest

from tasks.monitoring.alarms import Alarm, kind_alarms


def test_a_kind_that_was_solved_and_then_no_more() -> None:
    history = [{"2/compare": (20.0, 5.0)}, {"2/compare": (20.0, 2.0)}, {"2/compare": (20.0, 0.2)}]
    assert kind_alarms(history) == [
        Alarm(
            "forgotten_kinds",
            False,
            "Kinds solved during the night but hardly ever at its end: 2/compare (25 %, then 1 %).",
        )
    ]


def test_kinds_that_were_never_solved() -> None:
    history = [
        {"b": (9.0, 0.0), "a": (9.0, 0.0), "c": (9.0, 5.0)},
        {"b": (20.0, 0.3), "a": (9.0, 0.1), "c": (9.0, 5.0)},
    ]
    (alarm,) = kind_alarms(history)
    assert (alarm.name, alarm.severe, alarm.round) == ("unsolved_kinds", False, None)
    assert alarm.sentence == "Kinds hardly ever solved all night (worked solutions would help): a, b."


@pytest.mark.parametrize(
    "history",
    [
        [],
        [{"a": (20.0, 5.0)}, {"a": (20.0, 1.0)}],  # still solved sometimes
        [{"a": (20.0, 2.0)}, {"a": (20.0, 0.0)}],  # never could
        [{"a": (7.0, 7.0)}, {"a": (20.0, 0.0)}],  # seven tries may be luck
        [{"a": (20.0, 10.0)}, {"a": (7.0, 0.0)}],
        [{"a": (20.0, 0.0)}, {"a": (20.0, 10.0)}],  # learned, not forgotten
    ],
)
def test_no_alarm_without_reason(history: list[dict[str, tuple[float, float]]]) -> None:
    assert kind_alarms(history) == []
