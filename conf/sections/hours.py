"""Times of day and time zones: when a night's deadline is."""

import datetime
import difflib
import re
import time
import zoneinfo

import tzlocal

CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
NOON = datetime.time(12)


def time_of_day(text: str) -> datetime.time:
    """`06:30` as a time. Raises ValueError."""
    found = CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f'"{text}" is no time of day; write it as "06:30"')
    return datetime.time(int(found[1]), int(found[2]))


def time_zone(name: str | None) -> datetime.tzinfo | None:
    """The zone of this IANA name; None: the machine's. Raises ValueError."""
    if name is None:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder, or too long a one
        near = difflib.get_close_matches(name, zoneinfo.available_timezones(), n=1)
        example = f"did you mean {near[0]}?" if near else "write it as in Europe/Berlin"
        raise ValueError(f'"{name}" is no time zone; {example}') from None


def machine_zone() -> str:
    """The IANA name of the machine's zone; Etc/UTC where it has none that is known."""
    try:
        return tzlocal.get_localzone_name() or "Etc/UTC"
    except zoneinfo.ZoneInfoNotFoundError:
        return "Etc/UTC"


def clocks_in(zone: str | None, moment: float | None = None) -> datetime.datetime:
    """What clocks in a zone show at a moment (seconds since the epoch; None: now)."""
    moment = time.time() if moment is None else moment
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).astimezone(time_zone(zone))


def deadline_of(date: str, text: str, zone: str | None) -> datetime.datetime:
    """The moment (UTC) of the deadline of a night: on the day after its date for a time before noon, else on its date.

    A time that a change of daylight saving skips or repeats has two readings, by the offset before and after the
    change. It is the earlier one: the machine is free when the owner wants it.
    """
    clock = time_of_day(text)
    day = datetime.date.fromisoformat(date) + datetime.timedelta(days=clock < NOON)
    local = datetime.datetime.combine(day, clock, time_zone(zone))
    return min(local.replace(fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
