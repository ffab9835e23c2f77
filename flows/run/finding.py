"""What looking at a machine comes to."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was found, and what to do where that is not good."""

    name: str
    level: Level
    found: str
    advice: str = ""
