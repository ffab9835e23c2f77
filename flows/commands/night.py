"""`nightschool night`: run a night, or resume one that was interrupted."""

import os
import sys
import time
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from httpx import HTTPError

from conf.load import own_file
from conf.schema import NightConfig
from conf.sections.hours import clocks_in, time_zone
from conf.sections.redact import redact
from conf.storage.home import SHORT_REPORT, Home, InputError, NightError
from conf.storage.locks import NIGHT, NightRunningError, hold, refuse_if_night_running
from conf.storage.log import warnings
from flows.commands.options import AsJson, Config, Overrides, configuration, print_json
from flows.run.dates import Hours, check_deadline, checked_date, date_of_night

INTERRUPTED = 130  # the exit code after Ctrl-C


def night(
    config: Config = None,
    date_named: Annotated[
        str | None,
        typer.Option("--date", help="the night's date, e.g. 2026-11-20; default: today, before noon yesterday"),
    ] = None,
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="delete this night's work, and start it over")] = False,
    no_promote: Annotated[bool, typer.Option("--no-promote", help="decide, but do not promote")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="only show what the night would do, and how long it takes")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a night, or resume one that was interrupted."""
    home, settings = Home.here(), configuration(config, overrides, None if fresh else date_named)
    now = clocks_in(settings.deadline_time_zone)
    date = date_of_night(now) if date_named is None else checked_date(date_named, "--date", now)
    settings = configuration(config, overrides, None if fresh else date)  # if that night has begun, its own
    if plan:
        _show_plan(home, settings, date, config or own_file(home, None if fresh else date), fresh, as_json)
        return
    # after the first checks: the libraries take seconds to import
    from flows.run.history import first_start, resume_command, unfinished_before
    from flows.run.levels import with_next_level
    from tasks.registry.promote import NO_PROMOTE

    earlier = None if date_named or fresh else unfinished_before(home, date, with_next_level(settings, home, date))
    # with --no-promote, a night that may promote is not resumed
    if earlier and (not no_promote or (home.night(earlier) / NO_PROMOTE).exists()):
        hours = Hours.of(settings, earlier, first_start(home.night(earlier)))
        if settings.deadline is None and hours.end > time.time():
            _say(f"Resuming the interrupted night {earlier}; --date {date} starts another.")
            date = earlier
        else:  # its hours are over, or soon will be
            _say(f"Resuming the interrupted night {earlier}, which has its exam left; then the night {date} starts.")
            try:
                _summary(home, settings, earlier, now, fresh, no_promote)
            except (NightRunningError, typer.Exit):  # another process runs a night, or Ctrl-C
                raise
            except Exception as error:  # an earlier night's failure must not stop tonight's
                reason = redact(" ".join(str(error).split()))
                _say(f"The night {earlier} failed ({reason}); resume it with: {resume_command(home.night(earlier))}")
    summary = _summary(home, settings, date, now, fresh, no_promote)
    report = home.night(date) / SHORT_REPORT  # which old nights lack
    print_json(summary) if as_json else print(report.read_text() if report.exists() else summary["decision"])


def _show_plan(home: Home, config: NightConfig, date: str, file: Path, fresh: bool, as_json: bool) -> None:
    from flows.run.plan import plan

    parts = [("from", str(file)), *plan(home, config, date, fresh)]
    print_json(parts) if as_json else print(*(f"{what:10}{how}" for what, how in parts), sep="\n")


def _summary(
    home: Home, config: NightConfig, date: str, now: datetime, fresh: bool, no_promote: bool
) -> dict[str, Any]:
    """Run or resume a night, unless it is already finished, and return its summary."""
    from flows.run.context import check_identity, is_begun
    from flows.run.history import resume_command
    from flows.run.levels import with_next_level
    from flows.run.preflight import check_night, finished_summary

    config, folder = with_next_level(config, home, date), home.night(date)
    summary = None if fresh else finished_summary(home, date)
    if summary is not None:
        check_identity(folder, config)
        _say(f"The night {date} is finished; --date starts another one, --fresh starts it over.")
        return summary
    refuse_if_night_running(home.root)
    if resumed := is_begun(folder) and not fresh:
        check_identity(folder, config)
    else:
        check_deadline(config, date, now)
    with warnings() as logged:
        found = check_night(home, config, resumed)
    for each in logged:
        _say(each)
    if found:
        end = datetime.fromtimestamp(Hours.of(config, date).end, time_zone(config.deadline_time_zone))
        _say(f"The night {date} ends at about {end:%H:%M}. {found.sentence}")
    try:
        return _run(home, config, date, fresh, no_promote)
    except KeyboardInterrupt:
        if is_begun(folder):
            _say(f"\nInterrupted. Committed work is kept; resume with: {resume_command(folder)}")
        raise typer.Exit(INTERRUPTED) from None


def _run(home: Home, config: NightConfig, date: str, fresh: bool, no_promote: bool) -> dict[str, Any]:
    from flows.commands.console import NightProgress
    from flows.orchestration.server import prefect_api
    from flows.run.context import freeze_config
    from flows.run.preflight import finished_summary

    os.environ["NIGHTSCHOOL_HOME"] = str(home.root)
    try:
        with hold(home.root, f"{NIGHT}{date}"):
            freeze_config(home.night(date), config, fresh, no_promote)  # first: the clock shows when the night began
            server = prefect_api(home.root, meanwhile=lambda: import_module("flows.nightly"))
            with NightProgress(config, home.night(date)), server:
                from flows.nightly import nightly

                return nightly(config, date, no_promote)  # type: ignore[return-value]
    except HTTPError as error:
        summary = finished_summary(home, date)
        if summary is None:
            raise _cause(error) or error from None
        _say(f"The night {date} is finished, but Prefect's server could not be told: {error}")
        return summary


def _cause(error: BaseException | None) -> BaseException | None:
    """Return the error that ended the night before a call to Prefect's server failed, or None if there was none."""
    while error is not None and not isinstance(error, NightError | InputError | KeyboardInterrupt):
        error = error.__context__
    return error


def _say(text: str) -> None:
    print(text, file=sys.stderr)
