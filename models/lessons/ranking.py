"""How well rewards rank the answers that the owner was shown: accuracy, calibration, and bias towards length."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation, fmean

from scipy.special import betaincinv

from models.lessons.preference_data import Pick

Z = 1.959963984540054  # the normal distribution's 97.5 % quantile
BINS = 10

Rewards = Sequence[Sequence[float]]  # for each pick, one per answer


@dataclass(frozen=True)
class Interval:
    """A share of `n` picks, with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Bin:
    """The picks whose top answer got a probability of `low` to `high`: mean confidence and accuracy."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class ByLength:
    """Whether the rewards follow length.

    `longest_alone`, `shortest_alone`: how often the longest (shortest) answer, or a random one of several as long, is
    the chosen one. `longest_top`: how often the longest has the highest reward. `where_longest`, `elsewhere`: the
    accuracy where the longest was chosen, and where it was not. `correlation`: Pearson's, of reward and tokens, each
    minus its mean within the pick; None if one of them is constant.
    """

    longest_alone: float
    shortest_alone: float
    longest_top: float
    where_longest: Interval
    elsewhere: Interval
    correlation: float | None


@dataclass(frozen=True)
class Ranking:
    """How well rewards predict picks: how often the chosen answer has the highest reward, and why.

    The accuracy's interval is the exact one, because it decides whether the rewards may serve.
    """

    accuracy: Interval
    chance: float
    calibration: tuple[Bin, ...]
    expected_calibration_error: float
    length: ByLength

    @property
    def refusal(self) -> str | None:
        """Why such rewards may not serve, as half a sentence; None if they may.

        Uninformative rewards pass with a probability of at most 2.5 %, however few the picks are.
        """
        accuracy = self.accuracy
        if accuracy.low > self.chance:
            return None
        return (
            f"on {accuracy.n} held-out picks it is right {accuracy.value:.0%} of the time, with a 95 % interval of "
            f"{accuracy.low:.0%} to {accuracy.high:.0%}: that may be chance ({self.chance:.0%})"
        )


def rank(rewards: Rewards, picks: Sequence[Pick]) -> Ranking:
    """Evaluate rewards on picks; without picks the accuracy is 0, with the interval [0, 1].

    A pick with a reward that is not finite counts as one with equal rewards.
    """
    rewards = [row if all(map(math.isfinite, row)) else [0.0] * len(row) for row in rewards]
    right = [hit(row, pick.chosen) for row, pick in zip(rewards, picks, strict=True)]
    bins = reliability(rewards, right)
    chance = fmean(1 / len(pick.answers) for pick in picks) if picks else 1.0
    error = sum(bin_.n * abs(bin_.confidence - bin_.accuracy) for bin_ in bins) / max(1, len(picks))
    return Ranking(exact_interval(sum(right), len(right)), chance, bins, error, by_length(rewards, picks, right))


def hit(values: Sequence[float], chosen: int) -> float:
    """Return 1 if the chosen value is the highest, 1/k if k values share that, else 0."""
    top = max(values)
    return (values[chosen] == top) / sum(value == top for value in values)


def exact_interval(successes: float, n: int) -> Interval:
    """Return the exact 95 % interval of a proportion (Clopper and Pearson 1934).

    It misses the proportion in at most 2.5 % of all cases on either side, at every n. Ties make `successes` fractional.
    """
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    low = float(betaincinv(successes, n - successes + 1, 0.025)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 0.975)) if successes < n else 1.0
    return Interval(successes / n, low, high, n)


def wilson_interval(successes: float, n: int) -> Interval:
    """Return the 95 % score interval of a proportion (Wilson 1927); ties make `successes` fractional."""
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    share, spread = successes / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    # exactly 0 or 1 at its ends, which rounding would miss
    return Interval(share, middle - half if successes > 0 else 0.0, middle + half if successes < n else 1.0, n)


def reliability(rewards: Rewards, right: Sequence[float]) -> tuple[Bin, ...]:
    """Return the reliability curve (Guo et al. 2017, arXiv 1706.04599, section 2): the non-empty bins of equal width.

    The confidence of a pick is its top answer's softmax probability.
    """
    members: dict[int, list[tuple[float, float]]] = {}
    for row, hit_share in zip(rewards, right, strict=True):
        confidence = 1 / sum(math.exp(reward - max(row)) for reward in row)
        members.setdefault(min(int(confidence * BINS), BINS - 1), []).append((confidence, hit_share))
    return tuple(
        Bin(index / BINS, (index + 1) / BINS, len(pairs), fmean(c for c, _ in pairs), fmean(a for _, a in pairs))
        for index, pairs in sorted(members.items())
    )


def by_length(rewards: Rewards, picks: Sequence[Pick], right: Sequence[float]) -> ByLength:
    """Return how the rewards follow length (see `ByLength`); without picks all shares are 0."""
    longest = [hit(pick.lengths, pick.chosen) for pick in picks]
    shortest = [hit([-length for length in pick.lengths], pick.chosen) for pick in picks]
    tops = [
        fmean(hit(row, index) for index, length in enumerate(pick.lengths) if length == max(pick.lengths))
        for row, pick in zip(rewards, picks, strict=True)
    ]
    long = [share for share, is_longest in zip(right, longest, strict=True) if is_longest > 0]
    others = [share for share, is_longest in zip(right, longest, strict=True) if is_longest == 0]
    residuals = [reward - fmean(row) for row in rewards for reward in row]
    lengths = [length - fmean(pick.lengths) for pick in picks for length in pick.lengths]
    return ByLength(
        longest_alone=fmean(longest or [0.0]),
        shortest_alone=fmean(shortest or [0.0]),
        longest_top=fmean(tops or [0.0]),
        where_longest=wilson_interval(sum(long), len(long)),
        elsewhere=wilson_interval(sum(others), len(others)),
        correlation=correlation(residuals, lengths) if len(set(residuals)) > 1 and len(set(lengths)) > 1 else None,
    )
