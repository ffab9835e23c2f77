"""How well rewards rank the answers that an owner was shown: right how often, how surely, and whether by length."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation, fmean

from scipy.special import betaincinv

from models.lessons.preference_data import Pick

Z = 1.959963984540054  # the normal distribution's 97.5 % quantile
BINS = 10

Rewards = Sequence[Sequence[float]]  # of every pick, one for each answer


@dataclass(frozen=True)
class Interval:
    """A share of `n` picks, with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Bin:
    """The picks whose top answer got a probability of `low` to `high`: how sure, and how often right."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class ByLength:
    """Whether the rewards go by length.

    `longest_alone`, `shortest_alone`: how often the longest (shortest) answer, any of several as long, would be the
    right guess. `longest_top`: how often it has the highest reward. `where_longest`, `elsewhere`: the accuracy where
    the longest was picked, and where it was not. `correlation`: Pearson's, of reward with tokens, each less its pick's
    mean; None where one of them never differs.
    """

    longest_alone: float
    shortest_alone: float
    longest_top: float
    where_longest: Interval
    elsewhere: Interval
    correlation: float | None


@dataclass(frozen=True)
class Ranking:
    """What rewards are worth on picks: how often the picked answer has the highest one, and what that is made of.

    The accuracy's interval is the exact one: it decides.
    """

    accuracy: Interval
    chance: float
    calibration: tuple[Bin, ...]
    expected_calibration_error: float
    length: ByLength

    @property
    def refusal(self) -> str | None:
        """Why such rewards may not serve, as half a sentence; None where they may.

        Rewards that say nothing serve with a probability of at most 2.5 %, however few the picks are.
        """
        found = self.accuracy
        if found.low > self.chance:
            return None
        return (
            f"on {found.n} held-out picks it is right {found.value:.0%} of the time, with a 95 % interval of "
            f"{found.low:.0%} to {found.high:.0%}: that may be chance ({self.chance:.0%})"
        )


def rank(rewards: Rewards, picks: Sequence[Pick]) -> Ranking:
    """Judges rewards by picks; of no picks the accuracy is 0, anywhere in [0, 1].

    Rewards that are not finite say nothing of their pick's answers.
    """
    rewards = [own if all(map(math.isfinite, own)) else [0.0] * len(own) for own in rewards]
    right = [hit(own, pick.chosen) for own, pick in zip(rewards, picks, strict=True)]
    bins = reliability(rewards, right)
    chance = fmean(1 / len(pick.answers) for pick in picks) if picks else 1.0
    error = sum(each.n * abs(each.confidence - each.accuracy) for each in bins) / max(1, len(picks))
    return Ranking(exact_interval(sum(right), len(right)), chance, bins, error, by_length(rewards, picks, right))


def hit(values: Sequence[float], chosen: int) -> float:
    """1 where the chosen one has the highest value, 1/k where k share that, else 0: what guessing among them gives."""
    top = max(values)
    return (values[chosen] == top) / sum(value == top for value in values)


def exact_interval(successes: float, n: int) -> Interval:
    """The 95 % interval of a proportion that misses it in at most 2.5 % of all cases on either side, at every n
    (Clopper and Pearson 1934); ties make the successes a fraction.
    """
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    low = float(betaincinv(successes, n - successes + 1, 0.025)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 0.975)) if successes < n else 1.0
    return Interval(successes / n, low, high, n)


def wilson_interval(successes: float, n: int) -> Interval:
    """The 95 % score interval of a proportion (Wilson 1927); ties make the successes a fraction."""
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    share, spread = successes / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    # at its ends the interval is closed, which rounding would miss
    return Interval(share, middle - half if successes > 0 else 0.0, middle + half if successes < n else 1.0, n)


def reliability(rewards: Rewards, right: Sequence[float]) -> tuple[Bin, ...]:
    """The reliability curve (Guo et al. 2017, arXiv 1706.04599, section 2): bins of equal width, empty ones left out.

    The confidence of a pick is its top answer's softmax probability.
    """
    members: dict[int, list[tuple[float, float]]] = {}
    for own, hit_share in zip(rewards, right, strict=True):
        confidence = 1 / sum(math.exp(reward - max(own)) for reward in own)
        members.setdefault(min(int(confidence * BINS), BINS - 1), []).append((confidence, hit_share))
    return tuple(
        Bin(place / BINS, (place + 1) / BINS, len(own), fmean(c for c, _ in own), fmean(a for _, a in own))
        for place, own in sorted(members.items())
    )


def by_length(rewards: Rewards, picks: Sequence[Pick], right: Sequence[float]) -> ByLength:
    """See `ByLength`; of no picks all shares are 0."""
    longest = [hit(pick.lengths, pick.chosen) for pick in picks]
    shortest = [hit([-length for length in pick.lengths], pick.chosen) for pick in picks]
    tops = [
        fmean(hit(own, place) for place, length in enumerate(pick.lengths) if length == max(pick.lengths))
        for own, pick in zip(rewards, picks, strict=True)
    ]
    there = [share for share, length in zip(right, longest, strict=True) if length > 0]
    others = [share for share, length in zip(right, longest, strict=True) if length == 0]
    residuals = [reward - fmean(own) for own in rewards for reward in own]
    lengths = [length - fmean(pick.lengths) for pick in picks for length in pick.lengths]
    return ByLength(
        longest_alone=_mean(longest),
        shortest_alone=_mean(shortest),
        longest_top=_mean(tops),
        where_longest=wilson_interval(sum(there), len(there)),
        elsewhere=wilson_interval(sum(others), len(others)),
        correlation=correlation(residuals, lengths) if len(set(residuals)) > 1 and len(set(lengths)) > 1 else None,
    )


def _mean(shares: Sequence[float]) -> float:
    return fmean(shares) if shares else 0.0
