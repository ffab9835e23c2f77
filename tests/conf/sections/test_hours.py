"""When a night's deadline is: the day, the zone, and the two nights a year on which clocks are changed."""

import datetime
import time
import zoneinfo
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from conf.sections.hours import clocks_in, deadline_of, machine_zone, time_of_day, time_zone


@pytest.fixture
def machine_in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("date", "deadline", "zone", "utc"),
    [
        ("2026-11-20", "6:30", "Europe/Berlin", "2026-11-21T05:30"),  # the morning after
        ("2026-11-20", "11:59", "Etc/UTC", "2026-11-21T11:59"),
        ("2026-11-20", "12:00", "Etc/UTC", "2026-11-20T12:00"),  # from noon on: the same evening
        ("2026-11-20", "23:00", "Europe/Berlin", "2026-11-20T22:00"),
        ("2026-11-20", "06:30", "Pacific/Auckland", "2026-11-20T17:30"),
        ("2026-10-24", "06:30", "Europe/Berlin", "2026-10-25T05:30"),  # an hour longer
        ("2026-10-24", "02:30", "Europe/Berlin", "2026-10-25T00:30"),  # twice: the first of them
        ("2027-03-27", "06:30", "Europe/Berlin", "2027-03-28T04:30"),  # an hour shorter
        ("2027-03-27", "02:30", "Europe/Berlin", "2027-03-28T00:30"),  # skipped: half an hour before the change
    ],
)
def test_the_deadline_of_a_night(date: str, deadline: str, zone: str, utc: str) -> None:
    assert deadline_of(date, deadline, zone) == datetime.datetime.fromisoformat(f"{utc}+00:00")


@pytest.mark.parametrize(
    ("date", "began", "deadline", "utc"),
    [
        ("2026-11-20", "2026-11-21T00:00", "13:00", "2026-11-21T12:00"),  # at 01:00: the next noon, not the last
        ("2026-11-20", "2026-11-20T11:30", "13:00", "2026-11-20T12:00"),
        ("2026-11-20", "2026-11-20T12:00", "13:00", "2026-11-21T12:00"),  # on the stroke
        ("2026-11-20", "2026-11-21T00:00", "06:30", "2026-11-21T05:30"),
        ("2026-11-20", "2026-11-21T06:00", "06:30", "2026-11-21T05:30"),  # past: the night is refused
        ("2026-10-24", "2026-10-25T00:30", "13:00", "2026-10-25T12:00"),  # clocks changed in the night
    ],
)
def test_the_deadline_comes_after_the_start(date: str, began: str, deadline: str, utc: str) -> None:
    start = datetime.datetime.fromisoformat(f"{began}+00:00").timestamp()
    assert deadline_of(date, deadline, "Europe/Berlin", start).isoformat() == f"{utc}:00+00:00"


@pytest.mark.usefixtures("machine_in_new_york")
@pytest.mark.parametrize(
    ("date", "deadline", "utc"),
    [
        ("2026-11-20", "06:30", "2026-11-21T11:30"),
        ("2026-07-01", "06:30", "2026-07-02T10:30"),
        ("2026-10-31", "01:30", "2026-11-01T05:30"),  # twice
        ("2027-03-13", "02:30", "2027-03-14T06:30"),  # skipped
    ],
)
def test_without_a_zone_it_is_the_machines(date: str, deadline: str, utc: str) -> None:
    assert deadline_of(date, deadline, None) == datetime.datetime.fromisoformat(f"{utc}+00:00")


@pytest.mark.usefixtures("machine_in_new_york")
def test_what_clocks_show() -> None:
    moment = datetime.datetime(2026, 11, 21, 3, 15, tzinfo=datetime.UTC).timestamp()
    shown = [clocks_in(zone, moment).isoformat() for zone in (None, "Etc/UTC", "Pacific/Auckland")]
    assert shown == ["2026-11-20T22:15:00-05:00", "2026-11-21T03:15:00+00:00", "2026-11-21T16:15:00+13:00"]
    assert abs(clocks_in(None).timestamp() - time.time()) < 60


@pytest.mark.parametrize("text", ["", "24:00", "06:60", "0630", "6.30", "06:30:00", "half past six", "٠٦:٣٠", " 06:30"])
def test_no_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of day; write it as"):
        time_of_day(text)


@pytest.mark.parametrize("name", ["", "Europe", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "a\0b", "x" * 500])
def test_no_time_zone(name: str) -> None:
    with pytest.raises(ValueError, match="is not a time zone; (did you mean|write it as)"):
        time_zone(name)


def test_the_machines_zone_has_a_name_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Mock(side_effect=zoneinfo.ZoneInfoNotFoundError("two files name two zones"))
    for found, name in ((lambda: "Asia/Tokyo", "Asia/Tokyo"), (lambda: None, "Etc/UTC"), (unknown, "Etc/UTC")):
        monkeypatch.setattr("tzlocal.get_localzone_name", found)
        assert machine_zone() == name
