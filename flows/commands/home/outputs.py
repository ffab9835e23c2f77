"""`nightschool report`, `logs` and `export`: what the nights of a home have written."""

import os
import shutil
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from conf.sections.hours import clocks_in
from conf.storage.home import NIGHTS, SHORT_REPORT, Home, InputError
from flows.commands.options import AsJson, Config, Date, Overrides, configuration, print_json, version_named
from flows.run.dates import checked_date


def report(
    date: Date = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="print the short report itself")] = False,
    open_: Annotated[bool, typer.Option("--open", help="open the report in the browser")] = False,
) -> None:
    """Print the path of a night's morning report, or the short report itself with --markdown."""
    from flows.run.history import last_report

    file = last_report(Home.here(), _checked(date), SHORT_REPORT if markdown else "report.html")
    print(file.read_text().rstrip() if markdown else file)
    if open_ and not webbrowser.open(file.as_uri()):
        print(f"no browser was found here; open this in one: {file}", file=sys.stderr)


def logs(
    date: Date = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on printing until Ctrl-C")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="lines of each log")] = 20,
) -> None:
    """Print the end of what a night, its engine and trainer, and Prefect's server have logged; the night comes last."""
    home, date = Home.here(), _checked(date)
    nights = sorted(home.nights.glob(f"{date or NIGHTS}/logs"))
    files = [*home.root.glob("prefect/*.log")] if nights or not date else []
    files += [file for night in nights[-1:] for file in night.glob("*.log")]
    files.sort(key=lambda file: (file.name == "night.log", file))
    if not files:
        raise InputError(f"{home.nights}: no logs{f' of {date}' if date else ''} yet; `nightschool night` writes some")
    os.execvp("tail", ["tail", f"--lines={lines}", *(["--follow=name", "--retry"] if follow else []), *map(str, files)])


def export(
    folder: Annotated[Path, typer.Argument(help="the folder to write; it must not exist yet")],
    version: Annotated[
        str, typer.Option(help="a version's number, alias or digest (`nightschool checkpoints`)")
    ] = "daytime",
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Copy a checkpoint to a Hugging Face model folder of your own, for transformers, vLLM or llama.cpp's converter."""
    from flows.serving.vllm_server import whole_model
    from models.hf.checkpoint import is_intact

    home, settings = Home.here(), configuration(config, overrides)
    chosen = version_named(version, home, settings)
    checkpoint = home.checkpoints / chosen.digest
    if not is_intact(checkpoint):
        raise InputError(f"{checkpoint}: changed, damaged or missing; choose another with --version")
    if folder.exists():
        raise InputError(f"{folder}: exists already; name a new folder")
    whole = whole_model(checkpoint, home, settings.student.trust_remote_code)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            draft = Path(place, folder.name)
            shutil.copytree(whole, draft, copy_function=shutil.copyfile)
            draft.rename(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error}); name another folder") from None
    print_json({"digest": chosen.digest, "folder": str(folder)}) if as_json else print(folder)


def _checked(date: str | None) -> str | None:
    return date and checked_date(date, "--date", clocks_in(None))
