"""The exam's statistics: tests, intervals, power, and their formatting."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, norm, sem, t

DRAWS = 10_000  # bootstrap resamples
POWER = 0.8  # four times in five
USUAL_FLIPS = 0.15  # the share of answers that a typical night flips
Z95 = float(norm.ppf(0.95))  # 1.645


@dataclass(frozen=True)
class Accuracy:
    """The share of `n` answers that are correct, with its 95 % Wilson score interval ([0, 1] if `n` is 0).

    For episodes, `counted` is False, and the accuracy is the mean of their values, with Student's 95 % t interval.
    """

    accuracy: float
    low: float
    high: float
    n: int
    counted: bool = True

    @classmethod
    def of(cls, correct: int, n: int) -> "Accuracy":
        """Return the accuracy if `correct` of `n` answers are right."""
        if n == 0:
            return cls(0.0, 0.0, 1.0, 0)
        interval = binomtest(correct, n).proportion_ci(method="wilson")
        return cls(correct / n, float(interval.low), float(interval.high), n)

    @classmethod
    def of_outcomes(cls, outcomes: pd.Series, counted: bool) -> "Accuracy":
        """Return the accuracy of outcomes, which are 0 or 1 if `counted`, else values of episodes. NaN is ignored."""
        graded = outcomes.dropna().to_numpy(dtype=float)
        if counted or len(graded) == 0:
            return cls.of(int(graded.sum()), len(graded))
        if len(graded) == 1:  # Student's interval takes two
            value = float(graded[0])
            return cls(value, min(0.0, value), max(1.0, value), 1, counted=False)
        mean, error = float(graded.mean()), float(t.ppf(0.975, len(graded) - 1) * sem(graded))
        return cls(mean, mean - error, mean + error, len(graded), counted=False)

    def __str__(self) -> str:
        """Return text such as `298 of 400 (74.5 %)` or, for episodes, `0.62 on average in 100 episodes`."""
        if not self.counted:
            return f"{self.accuracy:.2f} on average in {self.n} episodes"
        return f"{round(self.accuracy * self.n)} of {self.n} ({self.accuracy:.1%})".replace("%)", " %)")


def outcomes(evaluations: pd.DataFrame) -> pd.Series:
    """Return the outcome of each row of the evaluations table; NaN if the grader failed.

    The outcome is 1 for a correct answer and 0 for a wrong one. For an episode, it is the value achieved.
    """
    return evaluations["value"].astype(float).fillna(evaluations["correct"].astype(float))


def are_episodes(evaluations: pd.DataFrame) -> bool:
    """Return whether these rows are episodes, which achieve a value instead of being right or wrong."""
    return bool(evaluations["value"].notna().any())


def mcnemar(gained: int, lost: int) -> float:
    """Return the p-value of the one-sided exact test on the flips (McNemar 1947): P(Bin(gained + lost, ½) ≥ gained)."""
    return float(binomtest(gained, gained + lost, alternative="greater").pvalue) if gained + lost else 1.0


def sign_flip(differences: Float[np.ndarray, "n"]) -> float:
    """Return the p-value of the one-sided exact test on paired differences: P(Σ ±|d| ≥ Σ d) over all sign assignments.

    This is Fisher's randomisation test, by dynamic programming over the possible sums. Differences are rounded to 0.001
    or, if the largest one is above 2, to 1/2000 of it. If all differences are ±1, the result equals that of `mcnemar`.
    """
    unit = max(1e-3, np.abs(differences).max(initial=0.0) / 2000)
    steps = np.rint(differences / unit).astype(int)
    sizes = np.abs(steps[steps != 0])
    chances = np.zeros(2 * sizes.sum() + 1)  # of the sums from −Σ|d| to Σ|d|
    chances[sizes.sum()] = 1.0
    for size in sizes:
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    return min(1.0, float(chances[sizes.sum() + steps.sum() :].sum()))


def student_low(differences: Float[np.ndarray, "n"]) -> float:
    """Return the one-sided 95 % lower bound of the mean of `differences` (Student's t); −1 for fewer than two."""
    if len(differences) < 2:
        return -1.0
    return float(differences.mean() - t.ppf(0.95, len(differences) - 1) * sem(differences))


def bootstrap(differences: Float[np.ndarray, "n"], *, seed: int, samples: int = DRAWS) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean from a paired bootstrap (Efron & Tibshirani 1993, chapter 13).

    Resampling n pairs takes one step: a multinomial draw of how often each distinct difference occurs.
    """
    n = len(differences)
    if n == 0:
        return -1.0, 1.0
    values, counts = np.unique(differences, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=samples) @ values / n
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def tango_low(gained: int, lost: int, n: int) -> float:
    """Return the one-sided 95 % lower bound of the difference of two shares of the same `n` problems; −1 for none.

    It is where Tango's score test reaches 1.645. Unlike a Wald interval, it also holds if nearly all flips are losses.
    """
    least = -1 + 1e-9
    if n == 0 or tango_score(least, gained, lost, n) < Z95:
        return -1.0
    low: Any = brentq(lambda low: float(tango_score(low, gained, lost, n)) - Z95, least, (gained - lost) / n)
    return float(low)


def tango_score(difference: float, gained: Any, lost: Any, n: int) -> Any:
    """Return the score statistic of the hypothesis that the true difference is `difference` (Tango 1998, equation 6).

    "Equivalence test and confidence interval for the difference in proportions for the paired-sample design". `gained`
    and `lost` are numbers or arrays.
    """
    b, c = (2 * n - gained + lost) * difference - gained - lost, lost * difference * (1 - difference)
    share_lost = (np.sqrt(np.maximum(b * b + 8 * n * c, 0.0)) - b) / (4 * n)  # the most likely one under the hypothesis
    variance = n * (2 * share_lost + difference * (1 - difference))
    return (gained - lost - n * difference) / np.sqrt(np.maximum(variance, 1e-12))


def smallest_guard(margin: float) -> int:
    """Return the smallest number of problems that lets a guard with this margin pass if no answer flips.

    Without flips, the score statistic at −margin is √(n · margin / (1 − margin)), which must be above 1.645.
    """
    return math.floor(Z95**2 * (1 - margin) / margin) + 1


def bad_luck(n: int, margin: float, share: float = USUAL_FLIPS) -> float:
    """Return the probability that a guard of `n` problems rejects a candidate that is as good as the champion.

    Each answer flips with probability `share`, one way as likely as the other.
    """
    flips = np.arange(n + 1)
    flips = flips[binom.pmf(flips, n, share) > 1e-9]  # the likely ones, as a grid of all takes gigabytes
    gained, flips = np.meshgrid(np.arange(flips[-1] + 1), flips)
    rejected = (gained <= flips) & (tango_score(-margin, gained, flips - gained, n) <= Z95)
    return float((binom.pmf(flips, n, share) * binom.pmf(gained, flips, 0.5))[rejected].sum())


def signed(value: float, digits: int = 2) -> str:
    """Format a difference: `+0.60`, `−0.01`, `0.00`."""
    rounded = round(value, digits)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else ""
    return f"{sign}{abs(rounded):.{digits}f}"


def probability(p_value: float) -> str:
    """Format a p-value: `p = 0.0173`, `p < 0.0001`."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}"
