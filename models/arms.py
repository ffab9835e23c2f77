"""Arms whose worth changes while they are drawn: how often to draw each, and estimates that follow what was seen."""

from collections.abc import Mapping, Sequence
from statistics import fmean


def weights_of(arms: Sequence[str], estimates: Mapping[str, float], exploration: float) -> list[float]:
    """Return each arm's probability: in proportion to its estimate, mixed with an even share for all.

    An arm without an estimate has the mean of the others. All are even where there is no estimate above 0.
    """
    usual = fmean(estimates.values()) if estimates else 0.0
    worth = [estimates.get(arm, usual) for arm in arms]
    total = sum(worth)
    if total <= 0:
        return [1 / len(arms) for _ in arms]
    return [(1 - exploration) * value / total + exploration / len(arms) for value in worth]


def follow(estimate: float | None, seen: float, rate: float) -> float:
    """Return an estimate moved by `rate` of the way to what was seen: TD(0) with a constant step."""
    return seen if estimate is None else estimate + rate * (seen - estimate)
