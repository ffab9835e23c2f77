"""The report's pictures: inline SVG in the page's own colours and type, so that they suit a light and a dark page."""

import html
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
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
# What a completion came to, from the best to the worst: verdicts, colour and how much of it.
BANDS: Mapping[str, tuple[list[str], str, float]] = {
    "correct": (["correct"], FIRST, 1.0),
    "wrong": (["wrong"], SECOND, 1.0),
    "no answer": (["no_answer"], SECOND, 0.4),
    "stopped": (["timeout", "out_of_memory", "crashed", "forbidden"], MUTED, 0.7),
    "not graded": (["grader_failed"], INK, 1.0),
}
WIDTH = 4.6  # inches: at nine points the type is readable on a telephone and in half a page
MOST_KINDS = 30


@dataclass(frozen=True)
class Picture:
    """A drawing, its title, and the sentence that says how to read it (its text for those who cannot see it)."""

    title: str
    caption: str
    svg: Markup


@matplotlib.rc_context(STYLE)
def learning_curve(reward: pd.Series, quiz: Mapping[int, float], exams: Mapping[str, float]) -> Picture:
    """Mean reward and quiz accuracy per round, and a horizontal line for each checkpoint's exam accuracy."""
    figure, (axes,) = _figure(2.9)
    axes.plot(reward.index, reward, color=FIRST, label="mean reward", marker="o")
    if quiz:
        axes.plot(list(quiz), list(quiz.values()), color=SECOND, label="quiz", marker="D", linestyle="none")
    for (name, accuracy), height in zip(exams.items(), _apart(list(exams.values()), 0.075), strict=True):
        axes.axhline(accuracy, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.text(1.01, height, f"{name} {accuracy:.2f}", transform=axes.get_yaxis_transform(), va="center")
    axes.set_ylim(min(-0.03, 1.05 * float(reward.min())), max(1.03, 1.05 * float(reward.max())))
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncol=2, borderaxespad=0.2, handletextpad=0.5)
    return _picture(
        figure,
        "Learning curve",
        f"Mean reward of the training completions went from {reward.iloc[0]:.2f} to {reward.iloc[-1]:.2f}. "
        "Dashed: accuracy in the exam, whose problems are never trained on.",
    )


@matplotlib.rc_context(STYLE)
def signal(share: pd.Series, hopes: Mapping[str, pd.Series], counts: Mapping[str, float]) -> Picture:
    """The share of groups whose rewards differ, what was hoped for (by name), and the night's `counts` of groups."""
    figure, (axes,) = _figure(2.2)
    axes.plot(share.index, share, color=FIRST, label="seen", marker="o")
    for (name, hoped), style in zip(hopes.items(), ("--", ":"), strict=False):
        axes.plot(hoped.index, hoped, color=SECOND, label=name, linestyle=style)
    axes.set_ylim(-0.03, 1.03)
    if hopes:
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncol=3, borderaxespad=0.2, handletextpad=0.5)
    caption = (
        "Share of groups in which some completions were right and some wrong: only these teach. "
        f"Last round: {share.iloc[-1]:.2f}."
    )
    told = ", ".join(f"{number:.0f} {name}" for name, number in counts.items())
    return _picture(figure, "Groups with signal", f"{caption} In the night: {told}." if told else caption)


@matplotlib.rc_context(STYLE)
def lengths(length: pd.Series, truncated: pd.Series) -> Picture:
    """Mean completion length in tokens, and the share that was cut off."""
    return _two_panels(
        length,
        "tokens a completion",
        truncated,
        "share cut off at the limit",
        "Length of the completions",
        f"On average {length.iloc[-1]:.0f} tokens in the last round; {100 * truncated.iloc[-1]:.0f} % were cut off.",
    )


@matplotlib.rc_context(STYLE)
def health(entropy: pd.Series, mismatch: pd.Series) -> Picture:
    """The policy's entropy, and how far sampler and policy disagree about the tokens that were sampled."""
    return _two_panels(
        entropy,
        "entropy, nats a token",
        mismatch,
        "mean |policy − sampler| log-probability",
        "Entropy and mismatch",
        "Entropy near 0: the student no longer explores. Mismatch of 0.02 to 0.05 is healthy in bfloat16.",
    )


@matplotlib.rc_context(STYLE)
def gradients(norm: pd.Series) -> Picture:
    """The gradient's norm before clipping."""
    figure, (axes,) = _figure(2.2)
    _line(axes, norm, "")
    axes.set_ylim(bottom=0)
    return _picture(figure, "Gradient norm", f"Before clipping. Largest: {norm.max():.2g}.")


@matplotlib.rc_context(STYLE)
def teacher(kl: pd.Series) -> Picture:
    """How far the student is from the teacher of on-policy distillation, in its rounds."""
    figure, (axes,) = _figure(2.2)
    _line(axes, kl, "")
    axes.set_ylim(bottom=min(0.0, kl.min()))
    caption = f"Mean log π − log teacher a token of the student's own, from {kl.iloc[0]:.2f} to {kl.iloc[-1]:.2f} nats."
    return _picture(figure, "Distance to the teacher", caption)


@matplotlib.rc_context(STYLE)
def distillation(loss: pd.Series) -> Picture:
    """The loss of the supervised lessons, per optimizer step."""
    figure, (axes,) = _figure(2.2)
    _line(axes, loss, "")
    axes.set_xlabel("step")
    caption = f"Loss a token on worked solutions, from {loss.iloc[0]:.2f} to {loss.iloc[-1]:.2f}."
    return _picture(figure, "Distillation", caption)


@matplotlib.rc_context(STYLE)
def kinds(rates: pd.DataFrame, tried: pd.Series) -> Picture:
    """The share solved per kind (rows) and round (columns; NaN where none was drawn); `tried` picks the rows."""
    shown = rates.loc[sorted(tried.nlargest(MOST_KINDS).index)]
    rounds = [int(column) for column in shown.columns]
    figure, (axes,) = _figure(0.55 + 0.165 * len(shown))
    for row, (_, line) in enumerate(shown.iterrows()):
        for column, rate in zip(rounds, line, strict=True):
            if pd.isna(rate):
                continue
            axes.add_patch(
                Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=(FIRST, rate), edgecolor=RULE, linewidth=0.5)
            )
        axes.text(1.01, row, f"{line.dropna().iloc[-1]:.2f}", transform=axes.get_yaxis_transform(), va="center")
    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), [_short(str(kind)) for kind in shown.index])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    some = "" if len(shown) == len(rates) else f" The {len(shown)} most tried of {len(rates)} kinds."
    caption = f"The fuller the cell, the more of the kind was solved; right: the last time it was drawn.{some}"
    return _picture(figure, "Solved, by kind of problem", caption)


@matplotlib.rc_context(STYLE)
def verdicts(counts: Mapping[str, pd.DataFrame]) -> Picture:
    """The shares of the verdicts, one panel a benchmark (rounds × verdicts each), one bar a round."""
    figure, panels = _figure(0.9 + 0.85 * len(counts), panels=len(counts))
    given = pd.concat(list(counts.values())).sum()
    for axes, (benchmark, table) in zip(panels, counts.items(), strict=True):
        shares = table.div(table.sum(axis=1), axis=0)
        below = pd.Series(0.0, index=table.index)
        for name, (members, colour, strength) in BANDS.items():
            if given[members].any():
                band = shares[members].sum(axis=1)
                axes.bar(band.index, band, bottom=below, color=(colour, strength), label=name, width=0.9)
                below += band
        axes.set_ylim(0, 1)
        axes.set_ylabel(benchmark)
    panels[0].legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncol=3, borderaxespad=0.2, handletextpad=0.5)
    caption = "Each bar is a round; its parts are the shares of the training completions that came to this."
    if given[["timeout", "out_of_memory", "crashed", "forbidden"]].any():
        caption += " Stopped: the program crashed, did what is forbidden, or used up its time or memory."
    return _picture(figure, "Verdicts, by benchmark", caption)


@matplotlib.rc_context(STYLE)
def durations(seconds: Mapping[str, float]) -> Picture:
    """One bar a stage, each beginning where the one before ended."""
    total = sum(seconds.values())
    figure, (axes,) = _figure(0.6 + 0.19 * len(seconds))
    start = 0.0
    for row, spent in enumerate(seconds.values()):
        axes.barh(row, spent / 60, left=start / 60, color=FIRST, height=0.72)
        start += spent
    axes.set_yticks(range(len(seconds)), [f"{stage}  {duration(spent)}" for stage, spent in seconds.items()])
    axes.set_ylim(len(seconds) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    longest = max(seconds, key=lambda stage: seconds[stage])
    share = 100 * seconds[longest] / max(total, 1e-9)
    caption = f"The stages took {duration(total)} together, of which {longest} took {share:.0f} %."
    return _picture(figure, "Where the time went", caption, "minutes")


def duration(seconds: float) -> str:
    """`4.2 s`, `3 min 07 s`, `2 h 05 min`."""
    if seconds < 59.95:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _figure(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    column = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    column[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure, list(column)


def _line(axes: Axes, series: pd.Series, title: str) -> None:
    axes.plot(series.index, series, color=FIRST, marker="o")
    axes.set_title(title)


def _two_panels(upper: pd.Series, above: str, lower: pd.Series, below: str, title: str, caption: str) -> Picture:
    figure, panels = _figure(2.9, panels=2)
    for axes, series, name in zip(panels, (upper, lower), (above, below), strict=True):
        _line(axes, series, name)
        axes.set_ylim(0, max(1.15 * float(series.max()), 1e-3))
    return _picture(figure, title, caption)


def _apart(heights: list[float], least: float) -> list[float]:
    """Label positions, pushed upwards until no two are closer than `least`."""
    placed = dict(enumerate(heights))
    below = float("-inf")
    for index in sorted(placed, key=lambda index: placed[index]):
        placed[index] = below = max(placed[index], below + least)
    return [placed[index] for index in range(len(heights))]


def _short(kind: str) -> str:
    name = kind.split("/", 1)[-1] if kind.count("/") > 1 else kind  # `arithmetic/1/plus`, but `math/3`
    return name if len(name) <= 26 else f"{name[:25]}…"


def _picture(figure: Figure, title: str, caption: str, below: str = "round") -> Picture:
    last = figure.axes[-1]
    last.set_xlabel(last.get_xlabel() or below)
    buffer = io.StringIO()
    figure.savefig(
        buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    return Picture(title, caption, _inline(buffer.getvalue(), title, caption))


def _inline(svg: str, title: str, caption: str) -> Markup:
    """Cuts what only a file of its own needs, names the drawing, and makes its ids and colours the page's."""
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
    label = html.escape(f"{title}. {caption}")
    opening = f'<svg {box.group() if box else ""} role="img" aria-label="{label}"><title>{html.escape(title)}</title>'
    return Markup(opening + body)
