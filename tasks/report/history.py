"""The report's history: the finished nights with the same configuration name and exam target."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from conf.storage.home import NIGHTS, SUMMARY

NAME = re.compile(r"^name: .*$", re.MULTILINE)  # parsing a year of frozen configurations as YAML takes seconds


class PastNight(NamedTuple):
    """A finished night: the accuracies of champion and candidate on the target, and the candidate's 95 % interval.

    `link`: the path of the night's report, relative to tonight's report; None for tonight. `by_hand`: how the owner
    moved the serving alias since the previous night.
    """

    date: str
    promoted: bool
    champion: float
    candidate: float
    low: float
    high: float
    link: str | None
    by_hand: tuple[str, ...] = ()

    @property
    def serving(self) -> float:
        """The accuracy of the model that serves after this night."""
        return self.candidate if self.promoted else self.champion


def past_nights(night: Path, summary: Mapping[str, Any]) -> list[PastNight]:
    """Return the finished nights that share tonight's configuration name and target, oldest first and tonight last.

    `summary`: tonight's summary, not yet on disk. Accuracies on different targets would not be comparable.
    """
    found: list[PastNight] = []
    known: list[Mapping[str, str]] = []  # each summary repeats all earlier moves
    for past, link in [*_earlier(night), (summary, None)]:
        if past["target"] == summary["target"]:
            champion, candidate = past["accuracy"]["champion"], past["accuracy"]["candidate"]
            accuracies = champion["accuracy"], candidate["accuracy"], candidate["low"], candidate["high"]
            moves = tuple(_move(move) for move in past["by_hand"] if move not in known)
            found.append(PastNight(past["night"], past["decision"] == "promoted", *accuracies, link, moves))
        known += past["by_hand"]
    return found


def _move(move: Mapping[str, str]) -> str:
    """Format a move of the alias as `rollback to version 1, 19 November 2026, 08:15`, in local time."""
    at = datetime.fromisoformat(move["at"]).astimezone()
    return f"{move['by']} to version {move['version']}, {at.day} {at:%B %Y, %H:%M}"


def _earlier(night: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the summary of each earlier finished night with tonight's configuration name, and a link to its report."""
    name = _name(night)
    for file in sorted(night.parent.glob(f"{NIGHTS}/{SUMMARY}")):
        if file.parent.name < night.name and _name(file.parent) == name:
            yield json.loads(file.read_text()), f"../{file.parent.name}/report.html"


def _name(night: Path) -> str:
    found = NAME.search((night / "config.yaml").read_text())
    return found.group() if found else ""
