"""The report's two charts, drawn by matplotlib as inline SVG in the page's colours.

matplotlib is imported only when a chart is drawn, because the import takes seconds.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from tasks.report.history import PastNight
from tasks.report.text import percent, plural

# Placeholder colours. `_picture` replaces them with the page's CSS colours, which differ by mode (light, dark, print).
INK, MUTED, RULE, FIRST, SECOND = "#010101", "#020202", "#030303", "#040404", "#050505"
COLOURS = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "nightschool",  # the same night gives the same bytes
    "text.parse_math": False,
    "font.family": "DejaVu Sans",  # only to measure text; the page uses its own font
    "font.size": 9.0,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    "grid.color": RULE,
    **dict.fromkeys(("axes.linewidth", "grid.linewidth"), 0.6),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "lines.markersize": 4.0,
    "legend.borderaxespad": 0.2,
    "legend.columnspacing": 0.9,
    "legend.handlelength": 1.2,
}
SIZE = 4.6, 2.9  # inches: 9-point text is readable on a phone and at half a page's width
ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}  # position of a legend
LABELS = 5  # number of dates below the history chart


class Picture(NamedTuple):
    """A chart. Screen readers read its title and its caption instead of the image."""

    title: str
    caption: str
    svg: Markup


def learning_curve(reward: pd.Series, quiz: pd.Series, exams: Mapping[str, float]) -> Picture:
    """Draw mean reward and quiz accuracy by round, and a dashed line at each model's exam accuracy (`exams`)."""

    def plot(axes: Any) -> None:
        axes.plot(reward.index, reward, color=FIRST, label="mean reward", marker="o")
        if len(quiz):
            axes.plot(quiz.index, quiz, color=SECOND, label="quiz", marker="D", linestyle="none")
        for (name, accuracy), height in zip(exams.items(), apart(list(exams.values()), 0.075), strict=True):
            axes.axhline(accuracy, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.text(1.01, height, f"{name} {percent(accuracy)}", transform=axes.get_yaxis_transform(), va="center")
        axes.set_ylim(min(-0.03, 1.05 * float(reward.min())), max(1.03, 1.05 * float(reward.max())))
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        axes.set_xlabel("round")
        axes.legend(ncol=2, **ABOVE)

    first, last = f"{reward.iloc[0]:.2f}", f"{reward.iloc[-1]:.2f}"
    moved = f"went from {first} to {last}" if len(reward) > 1 else f"was {first}"
    caption = (
        f"The mean reward of the training completions {moved}. "
        "Dashed lines: accuracy in the exam, whose problems are never trained on."
    )
    return _picture("Learning curve", caption, plot)


def history_curve(nights: Sequence[PastNight], target: str) -> Picture:
    """Draw the serving model's accuracy by night, and a dot per candidate: filled if it was promoted, else hollow."""
    places = list(range(1, len(nights) + 1))

    def plot(axes: Any) -> None:
        serving = [accuracy for night in nights for accuracy in (night.champion, night.serving)]
        axes.plot([at for at in places for _ in range(2)], serving, color=FIRST, label="serves by day")
        axes.vlines(places, [night.low for night in nights], [night.high for night in nights], color=MUTED, lw=0.7)
        for promoted, label, colour in ((True, "promoted", FIRST), (False, "not promoted", SECOND)):
            shown = [
                (at, night.candidate) for at, night in zip(places, nights, strict=True) if night.promoted == promoted
            ]
            if shown:
                fill = colour if promoted else "none"
                axes.plot(*zip(*shown, strict=True), "o", color=colour, markerfacecolor=fill, label=label)
        labelled = sorted({round(at * (len(nights) - 1) / (LABELS - 1)) for at in range(LABELS)})
        dates = [f"{date.fromisoformat(nights[at].date):%-d %b}" for at in labelled]
        axes.set_xticks([at + 1 for at in labelled], dates)
        axes.yaxis.set_major_formatter("{x:.0%}")
        axes.legend(ncol=4, **ABOVE)

    caption = (
        f"Accuracy on {target}: the line is the model that serves after each night, a dot is a night's candidate with "
        f"its 95 % interval. {plural(sum(night.promoted for night in nights), 'promotion')} in {len(nights)} nights."
    )
    return _picture("Night by night", caption, plot)


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Return the labels' heights, increased where necessary so that any two are at least `least` apart."""
    placed, below = list(heights), float("-inf")
    for index in sorted(range(len(placed)), key=placed.__getitem__):
        placed[index] = below = max(placed[index], below + least)
    return placed


def _picture(title: str, caption: str, plot: Callable[[Any], None]) -> Picture:
    """Return the chart that `plot` draws. Its SVG has the page's colours, and its ids are unique in the page."""
    import matplotlib
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE, layout="constrained")
        plot(figure.subplots())
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{title.lower().replace(' ', '-')}-", svg[svg.index("<svg") :])
    for placeholder, colour in COLOURS.items():
        svg = svg.replace(placeholder, colour)
    return Picture(title, caption, Markup(svg))
