"""The options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[Path, typer.Option("--config", help="the night's configuration (YAML)")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="change a value, e.g. --set grpo.rounds=4")]
AsJson = Annotated[bool, typer.Option("--json", help="print one line of JSON, for scripts")]
