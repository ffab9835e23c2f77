"""The `nightschool` command."""

import dataclasses
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from httpx import HTTPError

from conf.load import STARTER, load_night
from conf.redact import struck
from conf.sections.hours import clocks_in
from conf.storage.home import Home, InputError, NightError
from conf.storage.locks import NIGHT, NightRunningError, hold, refuse_second
from flows import environment
from flows.commands.evaluate import evaluate
from flows.commands.journal import journal_app
from flows.commands.options import AsJson, Config, Overrides
from flows.commands.serve import serve
from flows.commands.services import services, ui
from flows.run.dates import check_deadline, checked_date, date_of_night

if TYPE_CHECKING:  # MLflow takes seconds to import
    from tasks.registry.mlflow_registry import Registry

INTERRUPTED = 130
FAILED = "the night failed; what is committed is kept"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A small language model studies overnight. Everything lies under NIGHTSCHOOL_HOME (default ./school).",
)
app.add_typer(journal_app, name="journal")
app.command()(evaluate)

Date = Annotated[str | None, typer.Option("--date", help="the night's date, e.g. 2026-11-20; before noon: yesterday's")]


@app.command()
def night(
    config: Config = STARTER,
    date_named: Date = None,
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="throw away what this night has, and begin anew")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="decide, and move nothing: the champion stays")] = False,
    as_json: AsJson = False,
) -> None:
    """Runs a night, or goes on with one that was interrupted."""
    home, settings = Home.here(), load_night(config, overrides or [])
    now = clocks_in(settings.deadline_time_zone)
    date = date_of_night(now) if date_named is None else checked_date(date_named, "--date", now)
    from flows.commands import console  # after what is said at once: the libraries take seconds to import
    from flows.run.context import check_identity, is_begun, is_dry
    from flows.run.history import unfinished_before
    from flows.run.preflight import check_fresh, check_night, finished_summary

    def summary_of(date: str) -> Any:
        """The summary of the night, which is run, or gone on with, unless it is finished."""
        summary = None if fresh else finished_summary(home, date)
        if summary is not None:
            check_identity(home.night(date), settings)
            print(f"The night {date} is finished; --date names another, --fresh begins it anew.", file=sys.stderr)
            return summary
        refuse_second(home.root)
        if fresh and is_begun(home.night(date)):
            check_fresh(home, settings, date)
        goes_on = not fresh and is_begun(home.night(date))
        if goes_on:
            check_identity(home.night(date), settings)
        else:
            check_deadline(settings, date, now)
        check_night(home, settings, goes_on)
        return _run_night(home, settings, date, fresh, dry_run, config, overrides or [])

    earlier = None if date_named or fresh else unfinished_before(home, date, settings)
    if earlier and (not dry_run or is_dry(home.night(earlier))):  # a real night does not become a dry one
        over = settings.deadline is not None  # it was this noon at the latest
        then = f"it sits its exam, then the night {date} begins" if over else f"--date {date} begins another"
        print(f"Going on with the night {earlier}, which was interrupted; {then}.", file=sys.stderr)
        if over:
            _finish(summary_of, home.night(earlier))
        else:
            date = earlier
    summary = summary_of(date)
    console.say_json(summary) if as_json else console.say_summary(summary)


def _finish(summary_of: Callable[[str], Any], folder: Path) -> None:
    """Finishes the night of the day before, whose hours are over; that this fails is no reason to have none tonight."""
    from flows.run.history import way_on

    try:
        summary_of(folder.name)
    except (NightRunningError, typer.Exit):  # somebody else's, or Ctrl-C
        raise
    except Exception as error:
        reason = struck(" ".join(str(error).split()))
        print(f"The night {folder.name} failed ({reason}); go on with it: {way_on(folder)}", file=sys.stderr)


def _behind(error: BaseException) -> BaseException:
    """What had ended the night when Prefect's server could not be told so; the error itself where there was nothing."""
    cause = error.__context__
    while cause is not None and not isinstance(cause, NightError | InputError | KeyboardInterrupt):
        cause = cause.__context__
    return error if cause is None else cause


def _run_night(
    home: Home, settings: Any, date: str, fresh: bool, dry_run: bool, config: Path, overrides: list[str]
) -> Any:
    from flows.commands import console
    from flows.orchestration.server import prefect_api
    from flows.run.context import freeze_config
    from flows.run.preflight import finished_summary
    from tasks import incidents

    os.environ["NIGHTSCHOOL_HOME"] = str(home.root)
    folder = home.night(date)
    try:
        try:
            with hold(home.root, f"{NIGHT}{date}"), console.NightProgress(settings):
                freeze_config(folder, settings, fresh, dry_run)
                with prefect_api(home.root, settings.prefect.port, lambda lost: incidents.note(folder, lost)):
                    from flows.nightly import nightly

                    return nightly(settings, date, dry_run)
        except HTTPError as error:
            summary = finished_summary(home, date)
            if summary is None:
                raise _behind(error) from None
            print(f"The night {date} is finished, but Prefect's server could not be told: {error}", file=sys.stderr)
            return summary
    except KeyboardInterrupt:
        sets = [f"--set={override}" for override in overrides]
        dry = ["--dry-run"] * dry_run
        again = shlex.join(["nightschool", "night", "--config", str(config), "--date", date, *sets, *dry])
        print(f"\nInterrupted. What is committed is kept; go on with: {again}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


@app.command()
def status(as_json: AsJson = False) -> None:
    """What runs now, how far it is and how long it will take, and what the last nights decided."""
    from flows.commands import console
    from flows.commands.status import status, told

    found = status(Home.here())
    console.say_json(found) if as_json else print(*told(found), sep="\n")


@app.command()
def report(
    date: Date = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="print the report itself, in short")] = False,
) -> None:
    """Prints where the morning report of a night lies (default: the last night that has one)."""
    from flows.run.history import last_report, short_report

    file = last_report(Home.here(), date and checked_date(date, "--date", clocks_in(None)))
    print(short_report(file) if markdown else file)


@app.command()
def checkpoints(config: Config = STARTER, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Lists the registered checkpoints: which serves by day, which did before, and their accuracies."""
    from flows.commands import console
    from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS

    registry = _registry(config, overrides)
    versions = [dataclasses.asdict(version) for version in registry.versions()] if registry else []
    by_alias = {alias: version["version"] for version in versions for alias in version["aliases"]}
    found = {"daytime": by_alias.get(DAYTIME), "previous": by_alias.get(PREVIOUS), "versions": versions}
    if as_json:
        console.say_json(found)
        return
    for version in versions:
        accuracy = "" if version["accuracy"] is None else f"{version['accuracy']:.3f}"
        print(f"{version['version']:>4}  {version['digest']}  {version['night']}", end="  ")
        print(f"{version['role']:10} {accuracy:6} {' '.join(version['aliases'])}")
    if not versions:
        print("no checkpoints yet: `nightschool night` makes the first")


@app.command()
def promote(version: str, config: Config = STARTER, overrides: Overrides = None) -> None:
    """Makes a registered version the one that serves by day."""
    from flows.commands.promote import promote_version, tell_prefect
    from tasks.registry.mlflow_registry import PROMOTE

    back = promote_version(Home.here(), _registry(config, overrides), version)
    undo = shlex.join(["nightschool", "rollback", *(["--config", str(config)] if config != STARTER else [])])
    print(f"version {version} serves from now on" + (f"; `{undo}` undoes it" if back else ""), flush=True)
    tell_prefect(PROMOTE, version, load_night(config, overrides or []))


@app.command()
def rollback(config: Config = STARTER, overrides: Overrides = None) -> None:
    """Goes back to the version that served before; a second rollback undoes it."""
    from flows.commands.promote import roll_back, tell_prefect
    from tasks.registry.mlflow_registry import ROLLBACK

    serving, finished = roll_back(Home.here(), _registry(config, overrides))
    told = f"version {serving.version} ({serving.digest}) serves"
    if finished:
        print(f"{told}: a move that was interrupted is finished; another rollback goes back from here", flush=True)
    else:
        print(f"{told} again; a second rollback undoes this one", flush=True)
    tell_prefect(ROLLBACK, serving.version, load_night(config, overrides or []))


@app.command()
def prune(
    config: Config = STARTER,
    overrides: Overrides = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only show what would go, and why the rest stays")] = False,
    as_json: AsJson = False,
) -> None:
    """Removes checkpoints and tables that no promotion chose and no night needs, as every night does at its end."""
    from flows.commands import console
    from flows.commands.prune import prune_home, told

    home, settings = Home.here(), load_night(config, overrides or [])
    found = prune_home(home, _registry(config, overrides), settings.keep_nights, dry_run)
    console.say_json(found) if as_json else print(*told(found), sep="\n")


@app.command()
def doctor(config: Config = STARTER, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Looks at this machine and says what to do about each finding."""
    from flows.commands import console
    from flows.commands.doctor import examine

    findings = examine(Home.here(), load_night(config, overrides or []))
    if as_json:
        console.say_json([dataclasses.asdict(finding) for finding in findings])
    else:
        console.say_findings(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


app.command()(ui)
app.command()(services)
app.command()(serve)


def _registry(config: Path, overrides: list[str] | None) -> "Registry | None":
    """The registry of this home; None where no night has begun one."""
    from flows.commands.promote import open_registry

    return open_registry(Home.here(), load_night(config, overrides or []))


@contextmanager
def _exit_codes() -> Iterator[None]:
    """0 done, 1 the night failed, 2 the input is wrong, 3 another night holds the home."""
    try:
        yield
    except InputError as error:
        print(f"nightschool: {error}", file=sys.stderr)
        sys.exit(2)
    except NightRunningError as error:
        print(f"nightschool: {error}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except NightError as error:
        told = f"{FAILED}: " if _is_night() else ""
        print(f"nightschool: {told}{error}", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        print(struck(traceback.format_exc()), end="", file=sys.stderr)
        told = f"{FAILED}, and the same command goes on" if _is_night() else f"{type(error).__name__}: a fault of ours"
        print(f"nightschool: {told}", file=sys.stderr)
        sys.exit(1)


def _is_night() -> bool:
    return sys.argv[1:2] == ["night"]


def main() -> None:
    """The command's entry point."""
    environment.prepare()
    with _exit_codes():
        app()
