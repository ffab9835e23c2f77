"""The report's history: every finished night of this student, as a table and as a curve that links to each report."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from matplotlib.ticker import PercentFormatter

from conf.storage.home import SUMMARY
from tasks.report.svg import FIRST, LEGEND, MUTED, SECOND, Picture, Reading, canvas, in_style, picture
from tasks.report.text import day, percent, plural

NAME = re.compile(r"^name: .*$", re.MULTILINE)  # a year of frozen configurations takes seconds to parse as YAML
LABELS = 5  # dates below the curve


@dataclass(frozen=True)
class PastNight:
    """A finished night: accuracies of champion and candidate on the target, the candidate's with its 95 % interval.

    `link`: the night's report, relative to tonight's; None for tonight. `by_hand`: how the owner has moved the serving
    alias since the night before.
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

    @property
    def reading(self) -> tuple[str, ...]:
        """What the curve says when the night is pointed at."""
        outcome = "promoted" if self.promoted else "not promoted"
        return day(self.date), f"candidate {percent(self.candidate)}, {outcome}", f"champion {percent(self.champion)}"


def past_nights(night: Path, summary: Mapping[str, Any]) -> list[PastNight]:
    """Return the finished nights of this configuration's name and target, the oldest first, tonight's the last.

    `summary`: tonight's, which is not written yet. Accuracies of another target would mean nothing here.
    """
    found: list[PastNight] = []
    known: list[Mapping[str, str]] = []  # each summary repeats all moves before it
    for past, link in [*_earlier(night), (summary, None)]:
        if past["target"] == summary["target"]:
            found.append(_past_night(past, link, tuple(_move(move) for move in past["by_hand"] if move not in known)))
            known += past["by_hand"]
    return found


@in_style
def history_curve(nights: Sequence[PastNight], target: str) -> Picture:
    """Draw the accuracy of the model that serves, night after night, and each candidate's: filled if promoted."""
    figure, (axes,) = canvas(2.9)
    places = list(range(1, len(nights) + 1))
    serving = [accuracy for night in nights for accuracy in (night.champion, night.serving)]
    axes.plot([at for at in places for _ in range(2)], serving, color=FIRST, label="serves by day")
    axes.vlines(places, [night.low for night in nights], [night.high for night in nights], color=MUTED, linewidth=0.7)
    for promoted, label, colour in ((True, "promoted", FIRST), (False, "not promoted", SECOND)):
        dots = [(at, night.candidate) for at, night in zip(places, nights, strict=True) if night.promoted is promoted]
        if dots:
            filled = colour if promoted else "none"
            axes.plot(*zip(*dots, strict=True), "o", color=colour, markerfacecolor=filled, label=label)
    labelled = sorted({round(at * (len(nights) - 1) / (LABELS - 1)) for at in range(LABELS)})
    axes.set_xticks([at + 1 for at in labelled], [_short(nights[at].date) for at in labelled])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(ncol=4, columnspacing=0.8, handlelength=1.0, **LEGEND)
    promotions = sum(night.promoted for night in nights)
    caption = (
        f"Accuracy on {target}: the line is the model that serves after each night, a dot is a night's candidate with "
        f"its 95 % interval. {plural(promotions, 'promotion')} in {len(nights)} nights. Each night links to its report."
    )
    readings = [Reading(at, night.reading, night.link) for at, night in zip(places, nights, strict=True)]
    return picture(figure, "Night by night", caption, readings, below="night")


def _past_night(summary: Mapping[str, Any], link: str | None, by_hand: tuple[str, ...]) -> PastNight:
    champion, candidate = summary["accuracy"]["champion"], summary["accuracy"]["candidate"]
    return PastNight(
        date=summary["night"],
        promoted=summary["decision"] == "promoted",
        champion=champion["accuracy"],
        candidate=candidate["accuracy"],
        low=candidate["low"],
        high=candidate["high"],
        link=link,
        by_hand=by_hand,
    )


def _move(move: Mapping[str, str]) -> str:
    """Return a move of the alias as `rollback to version 1, 19 November 2026, 08:15`, in local time."""
    at = datetime.fromisoformat(move["at"]).astimezone()
    return f"{move['by']} to version {move['version']}, {at.day} {at:%B %Y, %H:%M}"


def _earlier(night: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the summaries of the finished nights of the same name before tonight, each with a link to its report."""
    name = _name(night)
    for file in sorted(night.parent.glob(f"????-??-??/{SUMMARY}")):
        if file.parent.name < night.name and _name(file.parent) == name:
            yield json.loads(file.read_text()), f"../{file.parent.name}/report.html"


def _name(night: Path) -> str:
    found = NAME.search((night / "config.yaml").read_text())
    return found.group() if found else ""


def _short(night: str) -> str:
    found = date.fromisoformat(night)
    return f"{found.day} {found:%b}"
