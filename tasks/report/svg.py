"""How the report draws: inline SVG in the page's own colours and type, with figures that can be pointed at.

No script: the page shows what a model wrote, and may run none. What is pointed at is shown by the page's style sheet,
in its own colours.
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

# Placeholders in matplotlib's output, replaced by what the page's style sheet defines.
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
WIDTH = 4.6  # inches: at nine points the type is readable on a telephone and in half a page
DOTS = 72  # an inch: a figure's units are then the points of its SVG
LINE, LETTER = 11.5, 4.9  # points: a line of a reading, and its widest usual letter

in_style = matplotlib.rc_context(STYLE)


@dataclass(frozen=True)
class Picture:
    """A drawing, its title, and the sentence that says how to read it (its text for those who cannot see it)."""

    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True)
class Reading:
    """What a place of the x axis says, line by line, when it is pointed at; `link`: where it leads, relative or not."""

    x: float
    lines: tuple[str, ...]
    link: str | None = None


def canvas(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure so many inches high, and its panels, from the top; whole numbers at the bottom."""
    figure = Figure(figsize=(WIDTH, height), dpi=DOTS, layout="constrained")
    column = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    column[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure, list(column)


def curve(axes: Axes, series: pd.Series, title: str) -> None:
    """One curve with its points."""
    axes.plot(series.index, series, color=FIRST, marker="o")
    axes.set_title(title)


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Label positions, pushed upwards until no two are closer than `least`."""
    placed = dict(enumerate(heights))
    below = float("-inf")
    for index in sorted(placed, key=lambda index: placed[index]):
        placed[index] = below = max(placed[index], below + least)
    return [placed[index] for index in range(len(heights))]


def readings(curves: Mapping[str, pd.Series], name: str = "round", digits: int = 3) -> list[Reading]:
    """For every place that any of the curves has: its number, and the curves' values there."""
    table = pd.DataFrame(dict(curves)).sort_index()
    return [
        Reading(place, (f"{name} {place:g}", *(f"{what} {value:.{digits}f}" for what, value in row.dropna().items())))
        for place, row in ((float(str(place)), row) for place, row in table.iterrows())
    ]


def picture(figure: Figure, title: str, caption: str, told: Sequence[Reading] = (), below: str = "round") -> Picture:
    """The figure as a picture of the page; `told` is what can be pointed at, `below` names the x axis."""
    last = figure.axes[-1]
    last.set_xlabel(last.get_xlabel() or below)
    buffer = io.StringIO()
    figure.savefig(
        buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    linked = any(reading.link for reading in told)
    return Picture(title, caption, _inline(buffer.getvalue(), title, caption, _strips(figure, told), linked))


def _strips(figure: Figure, told: Sequence[Reading]) -> str:
    """One invisible strip a reading, as high as the panels: where it is pointed at, a hair line and a box appear."""
    if not told:
        return ""
    told = sorted(told, key=lambda reading: reading.x)
    upper, lower = figure.axes[0], figure.axes[-1]
    height = figure.get_figheight() * DOTS
    top, bottom = height - upper.bbox.y1, height - lower.bbox.y0
    hairs = [float(lower.transData.transform((reading.x, 0.0))[0]) for reading in told]
    between = [(one + other) / 2 for one, other in pairwise(hairs)]
    edges = [lower.bbox.x0, *between, lower.bbox.x1]
    return "".join(
        _strip(reading, (left, right), hair, (top, bottom))
        for reading, left, right, hair in zip(told, edges[:-1], edges[1:], hairs, strict=True)
    )


def _strip(reading: Reading, sides: tuple[float, float], hair: float, ends: tuple[float, float]) -> str:
    top, bottom = ends
    wide, high = LETTER * max(map(len, reading.lines)) + 10, LINE * len(reading.lines) + 6
    left = hair + 5 if hair + 5 + wide <= WIDTH * DOTS else max(hair - 5 - wide, 0.0)
    spans = "".join(f'<tspan x="{left + 5:.1f}" dy="{LINE}">{html.escape(text)}</tspan>' for text in reading.lines)
    body = (
        f"{_box(sides[0], top, max(sides[1] - sides[0], 0), bottom - top)}"
        f'<g class="told"><path d="M{hair:.1f} {top:.1f}V{bottom:.1f}"/>'
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
    """Cuts what only a file of its own needs, names the drawing, and makes its ids and colours the page's.

    A drawing with links is a group, for what is inside an image cannot be reached by a keyboard.
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
