"""Times of day, time zones, and the deadline of a night."""

import datetime
import difflib
import re
import time
import zoneinfo
from typing import Annotated

import tzlocal

from conf.sections.section import checked

CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
NOON = datetime.time(12)


def time_of_day(text: str) -> datetime.time:
    """Parse a time of day such as `06:30`. Raises ValueError if the text is not one."""
    match = CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not a time of day; write it as "06:30"')
    return datetime.time(int(match[1]), int(match[2]))


def time_zone(name: str | None) -> datetime.tzinfo | None:
    """Return an IANA time zone, or None (the machine's zone) if `name` is None. Raises ValueError if it is unknown."""
    if name is None:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # OSError: `name` is a folder or too long
        near = difflib.get_close_matches(name, zoneinfo.available_timezones(), n=1)
        example = f"did you mean {near[0]}?" if near else "write it as Europe/Berlin"
        raise ValueError(f'"{name}" is not a time zone; {example}') from None


TimeOfDay = Annotated[str, checked(time_of_day)]
TimeZone = Annotated[str, checked(time_zone)]


def machine_zone() -> str:
    """Return the IANA name of the machine's time zone, or Etc/UTC if it is unknown."""
    try:
        return tzlocal.get_localzone_name() or "Etc/UTC"
    except zoneinfo.ZoneInfoNotFoundError:
        return "Etc/UTC"


def clocks_in(zone: str | None, moment: float | None = None) -> datetime.datetime:
    """Return the local time in a zone (IANA name; None: the machine's) at a moment (Unix time; None: now)."""
    moment = time.time() if moment is None else moment
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).astimezone(time_zone(zone))


def deadline_of(date: str, text: str, zone: str | None, began: float | None = None) -> datetime.datetime:
    """Return a night's UTC deadline: the time `text` on the night's date, or on the next day if `text` is before noon.

    A night that `began` (Unix time) at or after `text` on its own date also has its deadline on the next day.
    If daylight saving time skips or repeats the time, two moments are possible. The earlier one is the deadline, so
    that the machine is free when the owner wants it.
    """
    clock = time_of_day(text)
    days = [datetime.date.fromisoformat(date) + datetime.timedelta(days=days) for days in (0, 1)]
    same, next_day = (_first_reading(datetime.datetime.combine(day, clock, time_zone(zone))) for day in days)
    is_over = began is not None and same.timestamp() <= began
    return next_day if clock < NOON or is_over else same


def _first_reading(local: datetime.datetime) -> datetime.datetime:
    return min(local.replace(fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
