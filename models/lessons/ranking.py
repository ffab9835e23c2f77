"""How well rewards rank the answers that the owner was shown: accuracy and length bias."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from scipy.special import betaincinv

from models.lessons.preference_data import Pick

Rewards = Sequence[Sequence[float]]  # for each pick, one reward per answer


@dataclass(frozen=True)
class Interval:
    """The share `value` of `n` picks, and its 95 % confidence interval from `low` to `high`."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Ranking:
    """How well rewards predict picks: how often the chosen answer gets the highest reward, and how much length matters.

    The `accuracy` has an exact interval, because it decides whether the rewards may be used. `chance`: the accuracy of
    random guessing. `length`: see `by_length`.
    """

    accuracy: Interval
    chance: float
    length: dict[str, float]

    @property
    def refusal(self) -> str | None:
        """The reason why these rewards may not be used, as a sentence fragment; None if they may be used.

        Uninformative rewards pass with a probability of at most 2.5 %, however few picks there are.
        """
        accuracy = self.accuracy
        if accuracy.low > self.chance:
            return None
        return (
            f"on {accuracy.n} held-out picks it is right {accuracy.value:.0%} of the time, with a 95 % interval of "
            f"{accuracy.low:.0%} to {accuracy.high:.0%}: that may be chance ({self.chance:.0%})"
        )


def rank(rewards: Rewards, picks: Sequence[Pick]) -> Ranking:
    """Evaluate rewards on picks. Without picks, the accuracy is 0, with the interval [0, 1].

    A pick in which any reward is not finite counts as if its rewards were all equal.
    """
    rewards = [row if all(map(math.isfinite, row)) else [0.0] * len(row) for row in rewards]
    right = [hit(row, pick.chosen) for row, pick in zip(rewards, picks, strict=True)]
    chance = fmean(1 / len(pick.answers) for pick in picks) if picks else 1.0
    return Ranking(exact_interval(sum(right), len(right)), chance, by_length(rewards, picks))


def hit(values: Sequence[float], chosen: int) -> float:
    """Return 1 if the chosen value is the single highest, 1/k if it is one of k equal highest values, else 0."""
    top = max(values)
    return (values[chosen] == top) / sum(value == top for value in values)


def margin(values: Sequence[float], chosen: int) -> float:
    """Return how far the chosen value lies above the mean of the others, in standard deviations of all; 0 if all equal.

    Multiplying all values by a positive number doesn't change it. Of two values, it is 2, −2 or 0.
    """
    others = [*values[:chosen], *values[chosen + 1 :]]
    spread = pstdev(values)
    return (values[chosen] - fmean(others)) / spread if spread else 0.0


def exact_interval(successes: float, n: int) -> Interval:
    """Return the exact 95 % confidence interval of a proportion (Clopper and Pearson 1934).

    For every n, each bound excludes the true value in at most 2.5 % of cases. Ties make `successes` fractional.
    """
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    low = float(betaincinv(successes, n - successes + 1, 0.025)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 0.975)) if successes < n else 1.0
    return Interval(successes / n, low, high, n)


def by_length(rewards: Rewards, picks: Sequence[Pick]) -> dict[str, float]:
    """Return how strongly the picks and the rewards follow answer length, as metrics that are all 0 without picks.

    `longest_alone`, `shortest_alone`: how often the longest or the shortest answer is the chosen one, with ties broken
    at random. `longest_top`: how often the longest answer has the highest reward.
    """
    longest = [hit(pick.lengths, pick.chosen) for pick in picks]
    shortest = [hit([-length for length in pick.lengths], pick.chosen) for pick in picks]
    tops = [
        fmean(hit(row, index) for index, length in enumerate(pick.lengths) if length == max(pick.lengths))
        for row, pick in zip(rewards, picks, strict=True)
    ]
    shares = {"longest_alone": longest, "shortest_alone": shortest, "longest_top": tops}
    return {name: fmean(values or [0.0]) for name, values in shares.items()}
