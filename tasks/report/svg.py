"""Inline SVG in the page's own colours and type, with readings that appear where it is pointed at.

The page shows what a model wrote and may run no script, so its style sheet alone shows and hides the readings.
"""

import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# Placeholders in matplotlib's output, replaced by the variables of the page's style sheet.
INK, MUTED, RULE, FIRST, SECOND = "#010101", "#020202", "#030303", "#040404", "#050505"
COLOURS = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "nightschool",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "legend.frameon": False,
}
LEGEND: dict[str, Any] = {  # above the drawing, at its left
    "loc": "lower left",
    "bbox_to_anchor": (-0.02, 1.0),
    "borderaxespad": 0.2,
    "handletextpad": 0.5,
}
WIDTH = 4.6  # inches: nine-point type is readable on a phone and in half a page
DOTS = 72  # per inch, so that a figure's units are the points of its SVG
LINE, LETTER = 11.5, 4.9  # points: a reading's line height, and the width of a letter

in_style = matplotlib.rc_context(STYLE)


@dataclass(frozen=True)
class Picture:
    """A drawing, its title, and a caption that says how to read it, also to a screen reader."""

    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True)
class Reading:
    """The lines that appear when a point of the x axis is pointed at; `link`: where a click leads."""

    x: float
    lines: tuple[str, ...]
    link: str | None = None


def canvas(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure `height` inches high and its panels from the top, over an x axis of whole numbers."""
    figure = Figure(figsize=(WIDTH, height), dpi=DOTS, layout="constrained")
    column = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    column[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure, list(column)


def curve(axes: Axes, series: pd.Series, title: str) -> None:
    """Plot one curve with its points."""
    axes.plot(series.index, series, color=FIRST, marker="o")
    axes.set_title(title)


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Return label positions, pushed upwards until no two are closer than `least`."""
    placed = dict(enumerate(heights))
    below = float("-inf")
    for index in sorted(placed, key=lambda index: placed[index]):
        placed[index] = below = max(placed[index], below + least)
    return [placed[index] for index in range(len(heights))]


def readings(curves: Mapping[str, pd.Series], name: str = "round", digits: int = 3) -> list[Reading]:
    """Return a reading for every x that any curve has: its number and the curves' values there."""
    table = pd.DataFrame(dict(curves)).sort_index()
    return [
        Reading(x, (f"{name} {x:g}", *(f"{what} {value:.{digits}f}" for what, value in row.dropna().items())))
        for x, row in ((float(str(x)), row) for x, row in table.iterrows())
    ]


def picture(figure: Figure, title: str, caption: str, points: Sequence[Reading] = (), below: str = "round") -> Picture:
    """Return the figure as a picture of the page; `below` names the x axis."""
    last = figure.axes[-1]
    last.set_xlabel(last.get_xlabel() or below)
    buffer = io.StringIO()
    figure.savefig(
        buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    linked = any(reading.link for reading in points)
    return Picture(title, caption, _inline(buffer.getvalue(), title, caption, _strips(figure, points), linked))


def _strips(figure: Figure, points: Sequence[Reading]) -> str:
    """Return an invisible strip per reading, as high as the panels, with the line and box that appear above it."""
    if not points:
        return ""
    points = sorted(points, key=lambda reading: reading.x)
    upper, lower = figure.axes[0], figure.axes[-1]
    height = figure.get_figheight() * DOTS
    top, bottom = height - upper.bbox.y1, height - lower.bbox.y0
    hairs = [float(lower.transData.transform((reading.x, 0.0))[0]) for reading in points]
    between = [(one + other) / 2 for one, other in pairwise(hairs)]
    edges = [lower.bbox.x0, *between, lower.bbox.x1]
    return "".join(
        _strip(reading, (left, right), hair, (top, bottom))
        for reading, left, right, hair in zip(points, edges[:-1], edges[1:], hairs, strict=True)
    )


def _strip(reading: Reading, sides: tuple[float, float], hair: float, ends: tuple[float, float]) -> str:
    top, bottom = ends
    wide, high = LETTER * max(map(len, reading.lines)) + 10, LINE * len(reading.lines) + 6
    left = hair + 5 if hair + 5 + wide <= WIDTH * DOTS else max(hair - 5 - wide, 0.0)
    spans = "".join(f'<tspan x="{left + 5:.1f}" dy="{LINE}">{html.escape(text)}</tspan>' for text in reading.lines)
    body = (
        f"{_box(sides[0], top, max(sides[1] - sides[0], 0), bottom - top)}"
        f'<g class="tip"><path d="M{hair:.1f} {top:.1f}V{bottom:.1f}"/>'
        f"{_box(left, top, wide, high)}"
        f'<text y="{top + 1:.1f}">{spans}</text></g>'
    )
    if reading.link is None:
        return f'<g class="reading">{body}</g>'
    label, link = html.escape(", ".join(reading.lines)), html.escape(reading.link)
    return f'<a class="reading" href="{link}" aria-label="{label}">{body}</a>'


def _box(left: float, top: float, wide: float, high: float) -> str:
    return f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}"/>'


def _inline(svg: str, title: str, caption: str, strips: str, linked: bool) -> Markup:
    """Return matplotlib's SVG for inclusion in the page: labelled, with unique ids and the page's colours.

    A drawing with links is a group: the keyboard cannot reach what is inside an image.
    """
    name = re.sub(r"[^a-z]+", "-", title.lower())
    svg = svg[svg.index("<svg") :]
    box = re.search(r'viewBox="[^"]*"', svg)
    body = svg[svg.index(">") + 1 :]
    body = re.sub(r"<(metadata|style)\b.*?</\1>", "", body, flags=re.S)
    body = re.sub(r'<g id="[^"]*">', "<g>", body)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", body)
    body = re.sub(r'font-family: [^;"]*; | transform="rotate\(-0 [^"]*"', "", body)
    for placeholder, colour in COLOURS.items():
        body = body.replace(placeholder, colour)
    body = body.replace("</svg>", f"{strips}</svg>")
    label, role = html.escape(f"{title}. {caption}"), "group" if linked else "img"
    opening = f'<svg {box.group() if box else ""} role="{role}" aria-label="{label}">'
    return Markup(opening + body)
