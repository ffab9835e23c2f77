"""The report's pictures of one night: how it learned, what it was judged by, and where the time went."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.patches import Rectangle

from tasks.report.markdown import duration
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

# What a completion came to, from the best to the worst: verdicts, colour and how much of it.
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
    """Mean reward and quiz accuracy per round, and a horizontal line for each checkpoint's exam accuracy."""
    figure, (axes,) = canvas(2.9)
    axes.plot(reward.index, reward, color=FIRST, label="mean reward", marker="o")
    if quiz:
        axes.plot(list(quiz), list(quiz.values()), color=SECOND, label="quiz", marker="D", linestyle="none")
    for (name, accuracy), height in zip(exams.items(), apart(list(exams.values()), 0.075), strict=True):
        axes.axhline(accuracy, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.text(1.01, height, f"{name} {accuracy:.2f}", transform=axes.get_yaxis_transform(), va="center")
    axes.set_ylim(min(-0.03, 1.05 * float(reward.min())), max(1.03, 1.05 * float(reward.max())))
    axes.legend(ncol=2, **LEGEND)
    return picture(
        figure,
        "Learning curve",
        f"Mean reward of the training completions went from {reward.iloc[0]:.2f} to {reward.iloc[-1]:.2f}. "
        "Dashed: accuracy in the exam, whose problems are never trained on.",
        readings({"mean reward": reward, "quiz": pd.Series(quiz, dtype=float)}),
    )


@in_style
def reward_parts(parts: pd.DataFrame) -> Picture:
    """The parts that the rewards are made of, unweighted, as means of each round: rounds × parts."""
    figure, (axes,) = canvas(2.4)
    styles = [(colour, style) for style in ("-", "--", ":") for colour in (FIRST, SECOND, MUTED)]
    for (name, part), (colour, style) in zip(parts.items(), styles, strict=False):
        axes.plot(part.index, part, color=colour, linestyle=style, label=str(name))
    axes.set_ylim(min(-0.03, 1.05 * float(parts.min().min())), max(1.03, 1.05 * float(parts.max().max())))
    axes.legend(ncol=2, **LEGEND)
    return picture(
        figure,
        "Parts of the reward",
        "Means over the training completions, before the weights that the configuration gives them.",
        readings({str(name): part for name, part in parts.items()}),
    )


@in_style
def signal(share: pd.Series, hopes: Mapping[str, pd.Series], counts: Mapping[str, float]) -> Picture:
    """The share of groups whose rewards differ, what was hoped for (by name), and the night's `counts` of groups."""
    figure, (axes,) = canvas(2.2)
    axes.plot(share.index, share, color=FIRST, label="seen", marker="o")
    for (name, hoped), style in zip(hopes.items(), ("--", ":"), strict=False):
        axes.plot(hoped.index, hoped, color=SECOND, label=name, linestyle=style)
    axes.set_ylim(-0.03, 1.03)
    if hopes:
        axes.legend(ncol=3, **LEGEND)
    caption = (
        "Share of groups in which some completions were right and some wrong: only these teach. "
        f"Last round: {share.iloc[-1]:.2f}."
    )
    told = ", ".join(f"{number:.0f} {name}" for name, number in counts.items())
    caption = f"{caption} In the night: {told}." if told else caption
    return picture(figure, "Groups with signal", caption, readings({"seen": share, **hopes}))


@in_style
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


@in_style
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


@in_style
def gradients(norm: pd.Series) -> Picture:
    """The gradient's norm before clipping."""
    figure, (axes,) = canvas(2.2)
    curve(axes, norm, "")
    axes.set_ylim(bottom=0)
    return picture(figure, "Gradient norm", f"Before clipping. Largest: {norm.max():.2g}.", readings({"norm": norm}))


@in_style
def teacher(kl: pd.Series) -> Picture:
    """How far the student is from the teacher of on-policy distillation, in its rounds."""
    figure, (axes,) = canvas(2.2)
    curve(axes, kl, "")
    axes.set_ylim(bottom=min(0.0, kl.min()))
    caption = f"Mean log π − log teacher a token of the student's own, from {kl.iloc[0]:.2f} to {kl.iloc[-1]:.2f} nats."
    return picture(figure, "Distance to the teacher", caption, readings({"nats": kl}))


@in_style
def distillation(loss: pd.Series) -> Picture:
    """The loss of the supervised lessons, per optimizer step."""
    figure, (axes,) = canvas(2.2)
    curve(axes, loss, "")
    axes.set_xlabel("step")
    caption = f"Loss a token on worked solutions, from {loss.iloc[0]:.2f} to {loss.iloc[-1]:.2f}."
    return picture(figure, "Distillation", caption, readings({"loss": loss}, "step"))


@in_style
def kinds(rates: pd.DataFrame, tried: pd.Series) -> Picture:
    """The share solved per kind (rows) and round (columns; NaN where none was drawn); `tried` picks the rows."""
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
        axes.text(1.01, row, f"{line.dropna().iloc[-1]:.2f}", transform=axes.get_yaxis_transform(), va="center")
    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), [_short(str(kind)) for kind in shown.index])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    some = "" if len(shown) == len(rates) else f" The {len(shown)} most tried of {len(rates)} kinds."
    caption = f"The fuller the cell, the more of the kind was solved; right: the last time it was drawn.{some}"
    return picture(figure, "Solved, by kind of problem", caption)


@in_style
def verdicts(counts: Mapping[str, pd.DataFrame]) -> Picture:
    """The shares of the verdicts, one panel a benchmark (rounds × verdicts each), one bar a round."""
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
    caption = "Each bar is a round; its parts are the shares of the training completions that came to this."
    if given[["timeout", "out_of_memory", "crashed", "forbidden"]].any():
        caption += " Stopped: the program crashed, did what is forbidden, or used up its time or memory."
    return picture(figure, "Verdicts, by benchmark", caption)


@in_style
def durations(seconds: Mapping[str, float]) -> Picture:
    """One bar a stage, each beginning where the one before ended."""
    total = sum(seconds.values())
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
    share = 100 * seconds[longest] / max(total, 1e-9)
    caption = f"The stages took {duration(total)} together, of which {longest} took {share:.0f} %."
    return picture(figure, "Where the time went", caption, below="minutes")


def _two_panels(upper: pd.Series, above: str, lower: pd.Series, below: str, title: str, caption: str) -> Picture:
    figure, panels = canvas(2.9, panels=2)
    for axes, series, name in zip(panels, (upper, lower), (above, below), strict=True):
        curve(axes, series, name)
        axes.set_ylim(0, max(1.15 * float(series.max()), 1e-3))
    return picture(figure, title, caption, readings({above: upper, below: lower}))


def _short(kind: str) -> str:
    name = kind.split("/", 1)[-1] if kind.count("/") > 1 else kind  # `arithmetic/1/plus`, but `math/3`
    return name if len(name) <= 26 else f"{name[:25]}…"
