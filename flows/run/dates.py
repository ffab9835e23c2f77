"""Determines which date's night a start belongs to, whether the start must be refused, and when the night ends."""

import datetime
import math
import time
from dataclasses import dataclass

from conf.schema import NightConfig
from conf.sections.hours import deadline_of, time_zone
from conf.storage.home import InputError

START_WITHIN = 60  # minutes after the scheduled time


@dataclass(frozen=True)
class Hours:
    """When a night's hours start and end, in seconds since the epoch (inf: no end), and which setting sets the end."""

    end: float = math.inf
    because: str = ""
    start: float = 0.0

    @classmethod
    def of(cls, config: NightConfig, date: str, since: float | None = None) -> "Hours":
        """Return a night's hours, which end at its deadline or when its budget is used up, whichever is earlier.

        `since`: when the night began, in seconds since the epoch (default: now).
        """
        ends: list[tuple[float, str]] = []
        start = time.time() if since is None else since
        if config.budget_minutes is not None:
            ends.append((start + 60 * config.budget_minutes, f"budget_minutes ({config.budget_minutes:g})"))
        if config.deadline is not None:
            moment = deadline_of(date, config.deadline, config.deadline_time_zone, start)
            ends.append((moment.timestamp(), f"the deadline ({config.deadline})"))
        return cls(*min(ends), start) if ends else cls(start=start)


def date_of_night(now: datetime.datetime) -> str:
    """Return the date of a night that starts at `now`: yesterday's date before noon, today's date from noon on."""
    return (now - datetime.timedelta(days=now.hour < 12)).date().isoformat()


def checked_date(text: str, key: str, now: datetime.datetime) -> str:
    """Return a user's date in ISO form. Raises InputError for the setting `key` unless `text` is a date up to today."""
    try:
        date = datetime.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{key}: {text} is not a date; write it as 2026-11-20") from None
    if date > now.date():
        raise InputError(f"{key}: {text} is in the future, today is {now.date()}; leave it out for tonight's night")
    return date.isoformat()


def check_deadline(config: NightConfig, date: str, now: datetime.datetime) -> None:
    """Raise InputError if the deadline of this date's night has passed."""
    if config.deadline is None:
        return
    moment = deadline_of(date, config.deadline, config.deadline_time_zone, now.timestamp())
    if moment <= now:
        when = moment.astimezone(time_zone(config.deadline_time_zone))
        raise InputError(
            f"deadline: {config.deadline} of the night {date} is past, it was at {when:%Y-%m-%d %H:%M %Z}; "
            "set another, or none: --set deadline=null"
        )


def too_late(scheduled: datetime.datetime, now: datetime.datetime, run_count: int) -> str | None:
    """Return the reason to refuse a scheduled start, or None if the start is accepted.

    Without this check, a worker that comes back online would start every run it missed, one by one, well into the day.
    A retry (`run_count` above 1) is always accepted, because it resumes a night that began on time.
    """
    minutes = (now.timestamp() - scheduled.timestamp()) / 60  # by timestamp, because the clocks may change in between
    if run_count > 1 or minutes <= START_WITHIN:
        return None
    return (
        f"scheduled for {scheduled:%Y-%m-%d %H:%M %Z}, started {minutes:.0f} minutes later; late starts (more than "
        f"{START_WITHIN} minutes) are refused. Nothing is lost: the next night takes the day's journal"
    )
