"""Which night a start belongs to, and the starts that are refused."""

import datetime

from conf.schema import NightConfig
from conf.sections.hours import deadline_of, time_zone
from conf.storage.home import InputError

START_WITHIN = 60  # minutes after its scheduled time in which a night may begin


def date_of_night(now: datetime.datetime) -> str:
    """The night's date: yesterday's when it starts before noon."""
    return (now - datetime.timedelta(days=now.hour < 12)).date().isoformat()


def checked_date(text: str, key: str, now: datetime.datetime) -> str:
    """A night's date as a user wrote it. Raises InputError, in the name of `key`, for none, and for a future one."""
    try:
        date = datetime.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{key}: {text} is no date; write it as 2026-11-20") from None
    if date > now.date():
        raise InputError(f"{key}: {text} is in the future, today is {now.date()}; leave it out for tonight's night")
    return date.isoformat()


def check_deadline(config: NightConfig, date: str, now: datetime.datetime) -> None:
    """Raises InputError where the deadline of the night of this date is past."""
    if config.deadline is None:
        return
    moment = deadline_of(date, config.deadline, config.deadline_time_zone)
    if moment <= now:
        when = moment.astimezone(time_zone(config.deadline_time_zone))
        raise InputError(
            f"deadline: {config.deadline} of the night {date} is past, it was at {when:%Y-%m-%d %H:%M %Z}; "
            "name another, or go on without: --set deadline=null"
        )


def too_late(scheduled: datetime.datetime, now: datetime.datetime, run_count: int) -> str | None:
    """Why a scheduler's start is refused; None where it is not.

    A worker that comes back starts all runs that it missed, one after the other, into the day. A run that is tried
    again (`run_count` above 1) goes on with a night that had begun in time.
    """
    minutes = (now.timestamp() - scheduled.timestamp()) / 60  # clocks may have been changed in between
    if run_count > 1 or minutes <= START_WITHIN:
        return None
    return (
        f"scheduled for {scheduled:%Y-%m-%d %H:%M %Z}, started {minutes:.0f} minutes later; a night begins at most "
        f"{START_WITHIN} minutes late. Nothing is lost: the next one takes what the day brought"
    )
