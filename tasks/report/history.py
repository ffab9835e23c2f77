"""The report's history: what every night of this student came to, as a table and as one curve that leads to each."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from conf.storage.home import SUMMARY
from tasks.report.markdown import day, target_of
from tasks.report.svg import FIRST, LEGEND, MUTED, SECOND, Picture, Reading, canvas, in_style, picture

NAME = re.compile(r"^name: .*$", re.MULTILINE)  # of a frozen configuration: whose nights these are
LABELS = 5  # dates below the curve


@dataclass(frozen=True)
class PastNight:
    """A finished night: shares of the target that champion and candidate solved, the candidate's with its interval."""

    date: str
    promoted: bool
    champion: float
    candidate: float
    low: float
    high: float
    link: str | None
    by_hand: tuple[str, ...] = ()  # what its owner did to the alias that serves since the night before

    @property
    def serving(self) -> float:
        """The share that the model solves which the day after begins with."""
        return self.candidate if self.promoted else self.champion

    @property
    def told(self) -> tuple[str, ...]:
        """What its place on the curve says."""
        outcome = "promoted" if self.promoted else "not promoted"
        return day(self.date), f"candidate {self.candidate:.3f}, {outcome}", f"champion {self.champion:.3f}"


def past_nights(night: Path, summary: Mapping[str, Any]) -> list[PastNight]:
    """All nights up to this one, the oldest first, whose configuration has the same name and the same target.

    `summary` is this night's own, which is not written yet. Another exam's accuracies would say nothing here; what was
    moved by hand around its night stands before the next one that is shown.
    """
    target, tonight = target_of(summary), summary["night"]
    found: list[PastNight] = []
    known: list[Mapping[str, str]] = []  # each summary has all moves up to then
    by_hand: tuple[str, ...] = ()
    for folder, one in [*_earlier(night, tonight), (None, summary)]:
        moves = one.get("by_hand") or []
        by_hand += tuple(_told(move) for move in moves if move not in known)
        known += moves
        name = folder.name if folder else tonight
        if (folder is None or one.get("target") == target) and (past := _past(name, one, folder, by_hand)):
            found.append(past)
            by_hand = ()
        elif not found:
            by_hand = ()  # it was before the first one
    return found


@in_style
def curve(nights: Sequence[PastNight], target: str) -> Picture:
    """The accuracy of the model that serves, night after night, and each night's candidate: filled if promoted."""
    figure, (axes,) = canvas(2.9)
    places = list(range(1, len(nights) + 1))
    axes.plot(*zip(*_serving(nights), strict=True), color=FIRST, label="serves by day")
    hands = [(at - 0.5, one.champion) for at, one in zip(places, nights, strict=True) if one.by_hand]
    if hands:
        axes.plot(*zip(*hands, strict=True), "D", color=MUTED, label="by hand")
    axes.vlines(places, [one.low for one in nights], [one.high for one in nights], color=MUTED, linewidth=0.7)
    for promoted, label, colour in ((True, "promoted", FIRST), (False, "not promoted", SECOND)):
        chosen = [(at, one.candidate) for at, one in zip(places, nights, strict=True) if one.promoted is promoted]
        if chosen:
            filled = colour if promoted else "none"
            axes.plot(*zip(*chosen, strict=True), "o", color=colour, markerfacecolor=filled, label=label)
    some = sorted({round(at * (len(nights) - 1) / (LABELS - 1)) for at in range(LABELS)})
    axes.set_xticks([at + 1 for at in some], [_short(nights[at].date) for at in some])
    axes.legend(ncol=4, columnspacing=0.8, handlelength=1.0, **LEGEND)
    promotions = sum(one.promoted for one in nights)
    caption = (
        f"Share of {target} that the model solves which serves after each night, and each night's candidate with its "
        f"95 % interval. {promotions} promotion{'' if promotions == 1 else 's'} in {len(nights)} nights. "
        "A night leads to its report."
    )
    told = [Reading(at, one.told, one.link) for at, one in zip(places, nights, strict=True)]
    told += [Reading(at - 0.5, one.by_hand) for at, one in zip(places, nights, strict=True) if one.by_hand]
    return picture(figure, "Night by night", caption, told, below="night")


def _serving(nights: Sequence[PastNight]) -> Iterator[tuple[float, float]]:
    """Places and heights of the line of who serves: it changes at a night, or between two by hand."""
    for place, one in enumerate(nights, 1):
        if one.by_hand:
            yield from (
                (place - 0.5, other)
                for other in (nights[place - 2].serving if place > 1 else one.champion, one.champion)
            )
        yield from ((place, one.champion), (place, one.serving))


def _told(move: Mapping[str, str]) -> str:
    """As the clocks here show it."""
    at = datetime.fromisoformat(move["at"]).astimezone()
    return f"{move['by']} to version {move['version']}, {at.day} {at:%B %Y, %H:%M}"


def _earlier(night: Path, tonight: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The finished nights of the same name before tonight's date, and their summaries, where these can be read."""
    name = _name(night)
    for file in sorted(night.parent.glob(f"????-??-??/{SUMMARY}")):
        if file.parent.name < tonight and _name(file.parent) == name:
            try:
                yield file.parent, json.loads(file.read_text())
            except (OSError, ValueError):
                continue


def _name(night: Path) -> str | None:
    try:
        found = NAME.search((night / "config.yaml").read_text())
    except (OSError, ValueError):
        return None
    return found.group() if found else None


def _past(name: str, summary: Mapping[str, Any], folder: Path | None, by_hand: tuple[str, ...]) -> PastNight | None:
    """None where the exam was not sat."""
    accuracy = summary.get("accuracy") or {}
    champion, candidate = accuracy.get("champion"), accuracy.get("candidate")
    if not champion or not candidate:
        return None
    link = f"../{name}/report.html" if folder and (folder / "report.html").exists() else None
    promoted = summary["decision"] == "promoted"
    low, high = candidate["low"], candidate["high"]
    return PastNight(name, promoted, champion["accuracy"], candidate["accuracy"], low, high, link, by_hand)


def _short(night: str) -> str:
    found = date.fromisoformat(night)
    return f"{found.day} {found:%b}"
