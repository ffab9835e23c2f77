"""The `nightschool` command."""

import dataclasses
import io
import shlex
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from conf.sections.redact import redact
from conf.storage.home import Home, InputError, NightError
from conf.storage.locks import NightRunningError
from flows import environment
from flows.commands.blame import blame
from flows.commands.evaluate import evaluate
from flows.commands.home.config import config_app, init
from flows.commands.home.outputs import export, logs, report
from flows.commands.home.prune import prune
from flows.commands.journal import journal_app
from flows.commands.night import INTERRUPTED, night
from flows.commands.options import AsJson, Config, Overrides, configuration, print_json
from flows.commands.play import play
from flows.commands.pretrain import pretrain
from flows.commands.serve import serve
from flows.commands.services import services, ui
from flows.commands.teach import teach

if TYPE_CHECKING:  # MLflow takes seconds to import
    from tasks.registry.mlflow_registry import Registry

FAILED = "the night failed; committed work is kept"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A small language model studies overnight. Everything lies under NIGHTSCHOOL_HOME (default ./school).",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"nightschool {metadata.version('nightschool')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="print the version", callback=_print_version, is_eager=True)
    ] = False,
) -> None: ...


def status(as_json: AsJson = False) -> None:
    """Show what is running, how much time is left, and what the last nights decided."""
    from flows.commands.home.status import lines_of, status

    home = Home.here()
    state = status(home)
    print_json(state) if as_json else print(*lines_of(home, state), sep="\n")


def checkpoints(config: Config = None, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """List the registered checkpoints with their accuracies, and show which one serves by day."""
    from tasks.registry.mlflow_registry import DAYTIME, PREVIOUS
    from tasks.report.text import percent

    registry = _registry(config, overrides)
    versions = [dataclasses.asdict(version) for version in registry.versions()] if registry else []
    by_alias = {alias: version["version"] for version in versions for alias in version["aliases"]}
    if as_json:
        print_json({"daytime": by_alias.get(DAYTIME), "previous": by_alias.get(PREVIOUS), "versions": versions})
        return
    if not versions:
        print("no checkpoints yet: `nightschool night` makes the first")
        return
    row = "{:>7}  {:20}  {:10}  {:10}  {:>8}  {:>8}  {}"
    print(row.format("version", "digest", "night", "role", "accuracy", "problems", "alias"))
    for version in versions:
        names = (version[name] for name in ("version", "digest", "night", "role"))
        solved = percent(version["accuracy"]), version["problems"] or "–"
        print(row.format(*names, *solved, " ".join(version["aliases"])).rstrip())


def promote(
    version: Annotated[str, typer.Argument(help="its number, alias, or digest")],
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Choose the registered version that serves by day."""
    from flows.commands.home.promote import promote_version

    serving, back = promote_version(Home.here(), _registry(config, overrides), version)
    if as_json:
        print_json({"version": serving.version, "digest": serving.digest, "can_roll_back": back})
        return
    undo = shlex.join(["nightschool", "rollback", *(["--config", str(config)] if config else [])])
    print(f"version {serving.version} serves from now on" + (f"; `{undo}` undoes it" if back else ""))


def rollback(config: Config = None, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Return to the version that served before. A second rollback undoes the first."""
    from flows.commands.home.promote import roll_back

    serving, finished = roll_back(Home.here(), _registry(config, overrides))
    serves = f"version {serving.version} ({serving.digest}) serves"
    if as_json:
        print_json({"version": serving.version, "digest": serving.digest, "finished_move": finished})
    elif finished:
        print(f"{serves}: an interrupted move is finished; another rollback goes back from here")
    else:
        print(f"{serves} again; a second rollback undoes this one")


def doctor(
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
    plan: Annotated[bool, typer.Option("--plan", help="only estimate which students fit which GPUs")] = False,
) -> None:
    """Check this machine and the configuration, and say how to fix each problem."""
    from flows.commands.doctor import examine, print_findings, print_plan

    if plan:
        print_plan(as_json)
        return
    findings = examine(Home.here(), configuration(config, overrides))
    print_json([dataclasses.asdict(finding) for finding in findings]) if as_json else print_findings(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


PANELS = {
    "Nights": (init, night, report, status, logs, doctor, services, ui),
    "Days": (teach, serve, blame, play),
    "Models": (checkpoints, promote, rollback, evaluate, export, pretrain, prune),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(journal_app, name="journal", rich_help_panel="Days")
app.add_typer(config_app, name="config", rich_help_panel="Nights")


def _registry(config: Path | None, overrides: list[str] | None) -> "Registry | None":
    """Return this home's registry, or None if no night has created one yet."""
    from flows.web.health import open_registry

    return open_registry(Home.here(), configuration(config, overrides))


def main() -> None:
    """Run the CLI. Exit codes: 0 success, 1 failure, 2 invalid input, 3 another night is using the home, 130 Ctrl-C."""
    environment.prepare()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not know all letters
            stream.reconfigure(errors="replace")
    is_night = sys.argv[1:2] == ["night"]
    try:
        app()
    except InputError as error:
        _exit(2, str(error))
    except NightRunningError as error:
        _exit(3, str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except NightError as error:
        _exit(1, f"{FAILED}: {error}" if is_night else str(error))
    except Exception as error:
        print(redact(traceback.format_exc()), end="", file=sys.stderr)
        _exit(1, f"{FAILED}, and the same command resumes" if is_night else f"{type(error).__name__}: this is a bug")


def _exit(code: int, message: str) -> NoReturn:
    print(f"nightschool: {message}", file=sys.stderr)
    sys.exit(code)
