"""Options that several commands share, the version that one names, and the output of `--json`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conf.load import load_night, own_file
from conf.schema import NightConfig
from conf.storage.home import Home, InputError

if TYPE_CHECKING:
    from tasks.registry.mlflow_registry import Version

Config = Annotated[
    Path | None, typer.Option("--config", help="a configuration (YAML); default: this home's (`nightschool config`)")
]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="change a value, e.g. --set grpo.rounds=4")]
AsJson = Annotated[bool, typer.Option("--json", help="print one line of JSON, for scripts")]
Date = Annotated[str | None, typer.Option("--date", help="the night's date, e.g. 2026-11-20; default: the newest")]


def configuration(config: Path | None, overrides: list[str] | None, date: str | None = None) -> NightConfig:
    """Return the configuration that a command uses: the named file, or else the home's (`own_file`), with overrides."""
    return load_night(config or own_file(Home.here(), date), overrides or [])


def version_named(name: str, home: Home, config: NightConfig) -> "Version":
    """Return the version with this number, alias or digest. Raises InputError if there is none."""
    from flows.web.health import open_registry

    registry = open_registry(home, config)
    version = registry.find(name) if registry else None
    if version is None:
        raise InputError(f"there is no version {name}; `nightschool checkpoints` lists them")
    return version


def print_json(value: Any) -> None:
    """Print a value as exactly one line of JSON."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
