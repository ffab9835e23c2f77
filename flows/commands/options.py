"""Options that several commands share, and the output of `--json`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Config = Annotated[Path, typer.Option("--config", help="the night's configuration (YAML)")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="change a value, e.g. --set grpo.rounds=4")]
AsJson = Annotated[bool, typer.Option("--json", help="print one line of JSON, for scripts")]
Date = Annotated[str | None, typer.Option("--date", help="the night's date, e.g. 2026-11-20; before noon: yesterday's")]


def print_json(value: Any) -> None:
    """Print a value as exactly one line of JSON."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
