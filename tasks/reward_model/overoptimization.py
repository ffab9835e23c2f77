"""The alarm for reward over-optimization: the learned reward rises while real preference falls (arXiv 2210.10760)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from tasks.evaluation.statistics import mcnemar
from tasks.monitoring.alarms import Alarm

Figures = Mapping[str, float]  # a round's metrics: the content of metrics.json
# For each ranking, whether each held-out pick's chosen answer was ranked first. The key is the block's first round and
# the last round before the ranking (at the block's start, the round before the block).
Rankings = Mapping[tuple[int, int], Sequence[bool]]

WATCHED = "reward/learned"  # the metric of a round
WINDOW = 3  # rounds over which the learned reward is averaged, since one round has few prompts
RISE = 0.1  # minimum rise, as a share of the learned reward's within-group spread at the block's start
CHANCE = 0.05  # significance level of a drop at a block's first ranking; at its k-th, a k-th of this


def learned_reward_hacked(rounds: Sequence[Figures], rankings: Rankings, *, relative: bool = False) -> Alarm | None:
    """Return an alarm for the first ranking by which the learned reward rose but ranking accuracy dropped, or None.

    `relative`: whether the learned reward comes from a judge. A judge scores the answers of a group relative to each
    other, so the mean reward cannot rise, and a drop in ranking accuracy alone raises the alarm.

    Reward and accuracy are compared with the start of the block, because lessons between blocks also change both. The
    rewards are averaged over non-overlapping windows of up to three rounds. Two rankings of the same picks are compared
    by McNemar's exact one-sided test, at a level that falls with each ranking of the block. The result depends on
    nothing but committed metrics.
    """
    for first, number in sorted(rankings):
        before, after = rankings.get((first, first - 1)), rankings[first, number]
        looks = sum(block == first <= at <= number for block, at in rankings)
        if before is None or not first <= number <= len(rounds) or fell(before, after) > CHANCE / looks:
            continue
        fall = "the share of the owner's held-out picks that the student itself ranks first fell"
        fall += f" from {fmean(before):.2f} to {fmean(after):.2f}"
        (low, high), spread = risen(rounds[first - 1 : number])
        if relative:
            what = f"Under the judge's rankings {fall} by round {number}: from then on the judge was not asked."
        elif high - low > RISE * spread:
            what = f"The learned reward rose from {low:.2f} to {high:.2f} by round {number} while {fall}"
            what += ": from then on it was not used."
        else:
            continue
        return Alarm("learned_reward_hacked", False, what, number)
    return None


def unwatched(before: Sequence[bool]) -> str | None:
    """Return why no alarm is possible in a block that starts with the ranking `before`, or None if one is possible.

    The reason is a sentence fragment. An alarm is possible only if at least five picks are ranked first at the start.
    """
    if fell(before, [False] * len(before)) <= CHANCE:
        return None
    return (
        f"the learned reward cannot be watched: the student ranks {sum(before)} of {len(before)} held-out picks first, "
        "and chance alone may lose so few"
    )


def risen(rounds: Sequence[Figures]) -> tuple[tuple[float, float], float]:
    """Return the mean learned reward of the first and the last few rounds, and its first spread within groups."""
    measured = [figures for figures in rounds if WATCHED in figures]
    width = min(WINDOW, len(measured) // 2)
    if width == 0:
        return (0.0, 0.0), 0.0
    first, last = (fmean(figures[WATCHED] for figures in part) for part in (measured[:width], measured[-width:]))
    return (first, last), fmean(figures["reward/learned_spread"] for figures in measured[:width])


def fell(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Return the p-value of the drop in accuracy between two rankings, by McNemar's exact one-sided test."""
    lost = sum(was and not now for was, now in zip(before, after, strict=True))
    won = sum(now and not was for was, now in zip(before, after, strict=True))
    return mcnemar(lost, won)
