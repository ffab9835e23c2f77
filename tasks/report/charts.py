"""The report's charts of one night: how it learned, how it was graded, and where the time went."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.patches import Rectangle

from tasks.report.svg import (
    FIRST,
    INK,
    LEGEND,
    MUTED,
    RULE,
    SECOND,
    Picture,
    apart,
    canvas,
    curve,
    in_style,
    picture,
    readings,
)
from tasks.report.text import duration, percent

# Verdicts from the best to the worst, grouped for the chart: verdicts, colour and its opacity.
BANDS: Mapping[str, tuple[list[str], str, float]] = {
    "correct": (["correct"], FIRST, 1.0),
    "wrong": (["wrong"], SECOND, 1.0),
    "no answer": (["no_answer"], SECOND, 0.4),
    "stopped": (["timeout", "out_of_memory", "crashed", "forbidden"], MUTED, 0.7),
    "not graded": (["grader_failed"], INK, 1.0),
}
MOST_KINDS = 30


@in_style
def learning_curve(reward: pd.Series, quiz: Mapping[int, float], exams: Mapping[str, float]) -> Picture:
    """Draw mean reward and quiz accuracy per round, with a horizontal line at each model's exam accuracy."""
    figure, (axes,) = canvas(2.9)
    axes.plot(reward.index, reward, color=FIRST, label="mean reward", marker="o")
    if quiz:
        axes.plot(list(quiz), list(quiz.values()), color=SECOND, label="quiz", marker="D", linestyle="none")
    for (name, accuracy), height in zip(exams.items(), apart(list(exams.values()), 0.075), strict=True):
        axes.axhline(accuracy, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.text(1.01, height, f"{name} {percent(accuracy)}", transform=axes.get_yaxis_transform(), va="center")
    axes.set_ylim(min(-0.03, 1.05 * float(reward.min())), max(1.03, 1.05 * float(reward.max())))
    axes.legend(ncol=2, **LEGEND)
    return picture(
        figure,
        "Learning curve",
        f"The mean reward of the training completions went from {reward.iloc[0]:.2f} to {reward.iloc[-1]:.2f}. "
        "Dashed lines: accuracy in the exam, whose problems are never trained on.",
        readings({"mean reward": reward, "quiz": pd.Series(quiz, dtype=float)}),
    )


@in_style
def reward_parts(parts: pd.DataFrame) -> Picture:
    """Draw each round's mean of the reward's parts (rounds × parts), unweighted."""
    figure, (axes,) = canvas(2.4)
    styles = [(colour, style) for style in ("-", "--", ":") for colour in (FIRST, SECOND, MUTED)]
    for (name, part), (colour, style) in zip(parts.items(), styles, strict=False):
        axes.plot(part.index, part, color=colour, linestyle=style, label=str(name))
    axes.set_ylim(min(-0.03, 1.05 * float(parts.min().min())), max(1.03, 1.05 * float(parts.max().max())))
    axes.legend(ncol=2, **LEGEND)
    return picture(
        figure,
        "Parts of the reward",
        "Means over the training completions, before the configured weights are applied.",
        readings({str(name): part for name, part in parts.items()}),
    )


@in_style
def signal(share: pd.Series, counts: Mapping[str, float]) -> Picture:
    """Draw the share of groups whose rewards differ; `counts`: the night's groups."""
    night = ", ".join(f"{number:.0f} {name}" for name, number in counts.items())
    caption = (
        "Share of groups in which some completions were right and some wrong: only these teach. "
        f"Last round: {percent(share.iloc[-1], 0)}. Whole night: {night}."
    )
    figure, (axes,) = canvas(2.2)
    curve(axes, share, "")
    axes.set_ylim(-0.03, 1.03)
    return picture(figure, "Groups with signal", caption, readings({"observed": share}))


@in_style
def lengths(length: pd.Series, truncated: pd.Series) -> Picture:
    """Draw the mean completion length in tokens, and the share of completions that was cut off."""
    return _two_panels(
        length,
        "tokens per completion",
        truncated,
        "share cut off at the limit",
        "Length of the completions",
        f"The last round averaged {length.iloc[-1]:.0f} tokens; {percent(truncated.iloc[-1], 0)} were cut off.",
    )


@in_style
def health(entropy: pd.Series, mismatch: pd.Series) -> Picture:
    """Draw the policy's entropy, and how far sampler and trainer disagree on the sampled tokens' log-probabilities."""
    return _two_panels(
        entropy,
        "entropy, nats per token",
        mismatch,
        "mean |policy − sampler| log-probability",
        "Entropy and mismatch",
        "Entropy near 0 means that the student no longer explores. A mismatch below 0.05 is healthy in bfloat16.",
    )


def gradients(norm: pd.Series) -> Picture:
    """Draw the gradient norm before clipping."""
    return _one_curve(norm, "norm", "Gradient norm", f"Before clipping; the largest is {norm.max():.2g}.")


def teacher(kl: pd.Series) -> Picture:
    """Draw the student's distance to the teacher in the rounds of on-policy distillation."""
    caption = f"Mean log π − log teacher per token of the student's, from {kl.iloc[0]:.2f} to {kl.iloc[-1]:.2f} nats."
    return _one_curve(kl, "nats", "Distance to the teacher", caption)


def distillation(loss: pd.Series) -> Picture:
    """Draw the loss of the lessons on worked solutions, per optimizer step."""
    caption = f"Loss per token on worked solutions, from {loss.iloc[0]:.2f} to {loss.iloc[-1]:.2f}."
    return _one_curve(loss, "loss", "Distillation", caption, "step")


@in_style
def positions(table: pd.DataFrame) -> Picture:
    """Draw solve rates and advantages by token position, as `by_position` returns them."""
    figure, (upper, lower) = canvas(3.2, panels=2)
    for name, colour in (("first", MUTED), ("last", FIRST)):
        upper.plot(table.index, table[name], color=colour, marker="o", label=f"right, {name} third")
    upper.set_ylim(-0.03, 1.03)
    upper.legend(ncol=2, **LEGEND)
    curve(lower, table["advantage"], "mean advantage of a token")
    lower.axhline(0.0, color=MUTED, linewidth=0.8)
    names = {"first": "right in the first third", "last": "in the last third", "advantage": "advantage"}
    caption = (
        "By token position: the share right of the answers that get so far, in the first and last third of the rounds, "
        "and what the rounds made of the tokens there: more likely above 0, less likely below."
    )
    curves = {name: table[column] for column, name in names.items()}
    return picture(figure, "By position in the answer", caption, readings(curves, "token"), below="token")


@in_style
def kinds(rates: pd.DataFrame, tried: pd.Series) -> Picture:
    """Draw the share solved, kinds × rounds (NaN: none drawn), of the kinds that were `tried` most."""
    shown = rates.loc[sorted(tried.nlargest(MOST_KINDS).index)]
    rounds = [int(column) for column in shown.columns]
    figure, (axes,) = canvas(0.55 + 0.165 * len(shown))
    for row, (_, line) in enumerate(shown.iterrows()):
        for column, rate in zip(rounds, line, strict=True):
            if pd.isna(rate):
                continue
            axes.add_patch(
                Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=(FIRST, rate), edgecolor=RULE, linewidth=0.5)
            )
        axes.text(1.01, row, percent(line.dropna().iloc[-1], 0), transform=axes.get_yaxis_transform(), va="center")
    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), [_short(str(kind)) for kind in shown.index])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    limited = "" if len(shown) == len(rates) else f" Shown: the {len(shown)} most tried of {len(rates)} kinds."
    caption = f"Stronger colour: more solved. Right: latest value.{limited}"
    return picture(figure, "Solved, by kind of problem", caption)


@in_style
def verdicts(counts: Mapping[str, pd.DataFrame]) -> Picture:
    """Draw the shares of the verdicts: a panel per benchmark (rounds × verdicts), a bar per round."""
    figure, panels = canvas(0.9 + 0.85 * len(counts), panels=len(counts))
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
    panels[0].legend(ncol=3, **LEGEND)
    caption = "Each bar is a round, divided by the verdicts on its training completions."
    if given[["timeout", "out_of_memory", "crashed", "forbidden"]].any():
        caption += " Stopped: the program crashed, tried something forbidden, or ran out of time or memory."
    return picture(figure, "Verdicts, by benchmark", caption)


@in_style
def durations(seconds: Mapping[str, float], wall: float) -> Picture:
    """Draw a bar per stage, each beginning where the one before ended; `wall`: the night's seconds by the clock."""
    figure, (axes,) = canvas(0.6 + 0.19 * len(seconds))
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
    caption = (
        f"The night took {duration(wall)}, {longest} {duration(seconds[longest])} of it. Checkpoints are saved while "
        "the next round samples, so the stages may add up to more."
    )
    return picture(figure, "Where the time went", caption, below="minutes")


@in_style
def _one_curve(series: pd.Series, name: str, title: str, caption: str, axis: str = "round") -> Picture:
    figure, (axes,) = canvas(2.2)
    curve(axes, series, "")
    axes.set_ylim(bottom=min(0.0, series.min()))
    return picture(figure, title, caption, readings({name: series}, axis), below=axis)


def _two_panels(upper: pd.Series, above: str, lower: pd.Series, below: str, title: str, caption: str) -> Picture:
    figure, panels = canvas(2.9, panels=2)
    for axes, series, name in zip(panels, (upper, lower), (above, below), strict=True):
        curve(axes, series, name)
        axes.set_ylim(0, max(1.15 * float(series.max()), 1e-3))
    return picture(figure, title, caption, readings({above: upper, below: lower}))


def _short(kind: str) -> str:
    name = kind.split("/", 1)[-1] if kind.count("/") > 1 else kind  # `arithmetic/1/plus`, but `math/3`
    return name if len(name) <= 26 else f"{name[:25]}…"
