"""Options that several commands share, and the output of `--json`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from conf.load import load_night, own_file
from conf.schema import NightConfig
from conf.storage.home import Home

Config = Annotated[
    Path | None, typer.Option("--config", help="a configuration (YAML); default: this home's (`nightschool config`)")
]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="change a value, e.g. --set grpo.rounds=4")]
AsJson = Annotated[bool, typer.Option("--json", help="print one line of JSON, for scripts")]
Date = Annotated[str | None, typer.Option("--date", help="the night's date, e.g. 2026-11-20; before noon: yesterday's")]


def configuration(config: Path | None, overrides: list[str] | None, date: str | None = None) -> NightConfig:
    """Return the configuration that a command uses: the named file, or else the home's (`own_file`), with overrides."""
    return load_night(config or own_file(Home.here(), date), overrides or [])


def print_json(value: Any) -> None:
    """Print a value as exactly one line of JSON."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
