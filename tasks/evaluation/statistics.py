"""The exam's statistics: two checkpoints on the same problems, and whether the candidate has earned its promotion."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.optimize import root_scalar
from scipy.special import bdtrc
from scipy.stats import binom, binomtest, norm, sem, t

from models.lessons.ranking import wilson_interval
from tasks.evaluation.outcomes import are_values, outcomes

KEYS = ["problem_id", "sample"]
MAX_NULL_SHARE = 0.01
POWER = 0.8


@dataclass(frozen=True)
class Accuracy:
    """The share of `n` answers that is correct, with its 95 % score interval; without answers 0, in [0, 1].

    Of episodes (not `counted`) the mean of what they achieved, with Student's interval.
    """

    accuracy: float
    low: float
    high: float
    n: int
    counted: bool = True

    @classmethod
    def of(cls, correct: int, n: int) -> "Accuracy":
        """Return the accuracy of `n` answers of which `correct` are."""
        interval = wilson_interval(correct, n)
        return cls(interval.value, interval.low, interval.high, n)

    @classmethod
    def of_outcomes(cls, outcomes: pd.Series, counted: bool) -> "Accuracy":
        """Return the accuracy of graded outcomes; unless `counted`, their mean."""
        graded = outcomes.dropna().to_numpy(dtype=float)
        if counted or len(graded) < 2:
            return cls.of(int(graded.sum()), len(graded))
        mean, error = float(graded.mean()), float(t.ppf(0.975, len(graded) - 1) * sem(graded))
        return cls(mean, mean - error, mean + error, len(graded), counted=False)

    def __str__(self) -> str:
        """Return `298 of 400 (74.5 %)`, or `0.62 on average in 100 episodes`."""
        if not self.counted:
            return f"{self.accuracy:.2f} on average in {self.n} episodes"
        return f"{round(self.accuracy * self.n)} of {self.n} ({self.accuracy:.1%})".replace("%)", " %)")


@dataclass(frozen=True)
class Comparison:
    """Two checkpoints on one part of the exam: the same problems, pair by pair.

    `nulls`: pairs that could not be graded. `gained`, `lost`: answers that flipped, or episodes that went better and
    worse. `low`, `high`: the difference's 95 % interval; `guard_low`: its lower one-sided 95 % bound. `detectable`: the
    smallest true difference that such an exam detects four times in five; None where it can detect none.
    """

    name: str
    n: int
    nulls: int
    before: Accuracy
    after: Accuracy
    difference: float
    low: float
    high: float
    gained: int
    lost: int
    p_value: float
    guard_low: float
    detectable: float | None
    before_digest: str
    after_digest: str


USUAL_FLIPS = 0.15  # the share of answers that a night flips
MOST_BAD_LUCK = 0.25  # a guard that refuses an equally good candidate more often says so


@dataclass(frozen=True)
class Difference:
    """What a look sees: `n` graded pairs, those that got better and worse, the mean difference, and the p-value."""

    n: int
    gained: int
    lost: int
    mean: float
    p_value: float


@dataclass(frozen=True)
class Decision:
    """Whether the candidate becomes the champion, and why, in sentences."""

    promote: bool
    reasons: tuple[str, ...]


def compare(
    name: str, before: pd.DataFrame, after: pd.DataFrame, *, samples: int, seed: int, alpha: float = 0.025
) -> Comparison:
    """Compare two checkpoints' evaluations of one part of the exam.

    Pairs in which either answer could not be graded are dropped and counted. `samples` and `seed`: the bootstrap's.
    `alpha`: the level of the test that `detectable` refers to. Raises ValueError where the two tables do not hold the
    same problems.
    """
    first, second = _paired(name, before, after)
    graded, counted = first.notna() & second.notna(), not are_values(before)
    differences = (second - first)[graded].to_numpy(dtype=float)
    n, gained, lost = len(differences), int((differences > 0).sum()), int((differences < 0).sum())
    if counted:
        low, high = bootstrap(gained, lost, n, samples=samples, seed=seed)
        guard_low, smallest = agresti_min_low(gained, lost, n), detectable(gained + lost, n, alpha)
    else:
        low, high = bootstrap_mean(differences, samples=samples, seed=seed)
        guard_low, smallest = student_low(differences), detectable_mean(differences, alpha)
    return Comparison(
        name=name,
        n=n,
        nulls=len(first) - n,
        before=Accuracy.of_outcomes(first[graded], counted),
        after=Accuracy.of_outcomes(second[graded], counted),
        difference=float(differences.mean()) if n else 0.0,
        low=low,
        high=high,
        gained=gained,
        lost=lost,
        p_value=mcnemar(gained, lost) if counted else sign_flip(differences),
        guard_low=guard_low,
        detectable=smallest,
        before_digest=_digest(before),
        after_digest=_digest(after),
    )


def difference(name: str, before: pd.DataFrame, after: pd.DataFrame) -> Difference:
    """Return how two checkpoints' evaluations of one part differ, as `compare` does, without intervals."""
    first, second = _paired(name, before, after)
    differences = (second - first).dropna().to_numpy(dtype=float)
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    p_value = sign_flip(differences) if are_values(before) else mcnemar(gained, lost)
    return Difference(len(differences), gained, lost, float(differences.mean()) if len(differences) else 0.0, p_value)


def _paired(name: str, before: pd.DataFrame, after: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    first, second = _outcomes(before), _outcomes(after)
    if not first.index.equals(second.index):
        raise ValueError(f"{name}: the two checkpoints answered different problems; evaluate both again")
    return first, second


def mcnemar(gained: int, lost: int) -> float:
    """Return the p-value of the one-sided exact test on the flips (McNemar 1947): P(Bin(gained + lost, ½) ≥ gained)."""
    return float(binomtest(gained, gained + lost, alternative="greater").pvalue) if gained + lost else 1.0


def sign_flip(differences: Float[np.ndarray, "n"]) -> float:
    """Return the p-value of the one-sided exact test on paired differences: P(Σ ±|d| ≥ Σ d) over all signs.

    Fisher's randomisation test, by dynamic programming over the possible sums, of differences rounded to a thousandth
    (of the largest, where that is above 2). With differences of ±1 it is `mcnemar`.
    """
    unit = max(1e-3, np.abs(differences).max(initial=0.0) / 2000)
    steps = np.rint(differences / unit).astype(int)
    sizes = np.abs(steps[steps != 0])
    chances = np.zeros(2 * sizes.sum() + 1)  # of the sums from −Σ|d| to Σ|d|
    chances[sizes.sum()] = 1.0
    for size in sizes:
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    return min(1.0, float(chances[sizes.sum() + steps.sum() :].sum()))


def bootstrap_mean(differences: Float[np.ndarray, "n"], *, samples: int, seed: int) -> tuple[float, float]:
    """Return the bootstrap's 95 % percentile interval of a mean of paired differences."""
    if len(differences) == 0:
        return -1.0, 1.0
    drawn = np.random.default_rng(seed).choice(differences, (samples, len(differences))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def student_low(differences: Float[np.ndarray, "n"]) -> float:
    """Return the lower one-sided 95 % bound of a mean of paired differences, by Student's t."""
    if len(differences) < 2:
        return -1.0
    return float(differences.mean() - t.ppf(0.95, len(differences) - 1) * sem(differences))


def detectable_mean(differences: Float[np.ndarray, "n"], alpha: float) -> float | None:
    """Return the smallest true mean that a one-sided test at `alpha` detects four times in five: (z_α + z_β)·s/√n."""
    if len(differences) < 2 or not differences.any():
        return None
    return float((norm.isf(alpha) + norm.ppf(POWER)) * sem(differences))


def bootstrap(gained: int, lost: int, n: int, *, samples: int, seed: int) -> tuple[float, float]:
    """Return the paired bootstrap's 95 % percentile interval of the difference (Efron & Tibshirani 1993, chapter 13).

    A pair's difference is −1, 0 or 1, so resampling n pairs is one multinomial draw of the three counts.
    """
    if n == 0:
        return -1.0, 1.0
    shares = np.array([gained, lost, n - gained - lost]) / n
    drawn = np.random.default_rng(seed).multinomial(n, shares, size=samples)
    low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / n, [0.025, 0.975])
    return float(low), float(high)


def agresti_min_low(gained: int, lost: int, n: int) -> float:
    """Return the difference's lower one-sided 95 % bound: the adjusted Wald interval for matched pairs.

    Agresti & Min 2005, "Simple improved confidence intervals for comparing matched proportions": ½ is added to each of
    the four cells, so that the interval has a width even where nothing flipped.
    """
    total, up, down = n + 2, gained + 0.5, lost + 0.5
    error = math.sqrt(up + down - (up - down) ** 2 / total) / total
    return max((up - down) / total - float(norm.ppf(0.95)) * error, -1.0)


def smallest_guard(margin: float) -> int:
    """Return the least number of problems with which a guard of this margin passes when no answer flips.

    Without flips `agresti_min_low` is −1.645 / (n + 2), which must be above −margin.
    """
    return max(1, math.floor(float(norm.ppf(0.95)) / margin - 2) + 1)


def bad_luck(n: int, margin: float, share: float = USUAL_FLIPS) -> float:
    """Return the chance that a guard of `n` problems refuses a candidate that is no worse.

    With ψ = `share` of the answers flipping, half of them each way, the difference has the variance ψ / n, and the
    guard asks for difference − 1.645 √(ψ / n) > −margin: the chance is Φ(1.645 − margin / √(ψ / n)). It is a fifth
    where n = 6.2 ψ / margin².
    """
    return float(norm.cdf(float(norm.ppf(0.95)) - margin / math.sqrt(share / n)))


def power(n: int, share: float, difference: float, alpha: float) -> float:
    """Return the chance that `mcnemar` at `alpha` detects a true `difference` on n problems of which `share` flip.

    The exact unconditional power (Duffy 1984, "Asymptotic and exact power for the McNemar test"): with ψ the share of
    flips and δ the difference, Σ_d P(Bin(n, ψ) = d) · P(Bin(d, (ψ + δ) / 2ψ) ≥ c_d), c_d the least number of gains
    among d flips that is significant.
    """
    flips = np.arange(n + 1)
    least = np.concatenate([[1.0], binom.isf(alpha, flips[1:], 0.5) + 1])
    significant = bdtrc(least - 1, flips, min((share + difference) / (2 * share), 1.0))
    return float(binom.pmf(flips, n, share) @ np.where(least <= flips, significant, 0.0))


def detectable(flips: int, n: int, alpha: float) -> float | None:
    """Return the smallest true difference that `mcnemar` at `alpha` detects four times in five, if `flips / n` flip.

    Where so few flips could never suffice, all flips count as gains, ψ = δ in `power`. None where the exam is too small
    for any difference.
    """

    def surplus(share: float, difference: float) -> float:
        return power(n, share, difference, alpha) - POWER

    share = flips / n if n else 0.0
    if share and surplus(share, share) >= 0:
        return float(root_scalar(lambda difference: surplus(share, difference), bracket=(0.0, share), xtol=1e-6).root)
    if n == 0 or surplus(1.0, 1.0) < 0:
        return None
    least_share = max(share, 1e-9)
    return float(root_scalar(lambda alike: surplus(alike, alike), bracket=(least_share, 1.0), xtol=1e-6).root)


def signed(value: float, digits: int = 2) -> str:
    """Format a difference: `+0.60`, `−0.01`, `0.00`."""
    rounded = round(value, digits)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else ""
    return f"{sign}{abs(rounded):.{digits}f}"


def probability(p_value: float) -> str:
    """Format a p-value: `p = 0.0173`, `p < 0.0001`."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}"


def _outcomes(evaluations: pd.DataFrame) -> pd.Series:
    return evaluations.assign(outcome=outcomes(evaluations)).set_index(KEYS)["outcome"].sort_index()


def _digest(evaluations: pd.DataFrame) -> str:
    return str(evaluations["policy_digest"].iloc[0]) if len(evaluations) else ""


def judge_target(target: Comparison, level: float, most: int, better: bool) -> str:
    """Return what the exam showed on its target, in a sentence.

    `level`: of the last look, of an exam of at most `most` problems; `better`: whether the p-value is below it.
    """
    verb = "solved" if target.after.counted else "reached"
    verdict = "at most" if better else "above"
    return (
        f"{target.name}: the candidate {verb} {target.after}, the champion {target.before}: "
        f"{signed(target.difference)}, 95 % interval {signed(target.low)} to {signed(target.high)}; "
        f"{probability(target.p_value)}, {verdict} this look's level {level:.2g} ({target.n + target.nulls} of at most "
        f"{most} problems){'' if better else ': not enough to promote'}."
    )


def judge_guard(
    decision: Decision,
    guard: Comparison,
    margin: float,
    than: str = "",
    champion: Comparison | None = None,
) -> Decision:
    """Return the decision with a guard: its one-sided lower bound must be above minus the margin.

    `than`: whom the candidate is compared with, if not the champion. `champion`: how that one compares with the same
    model; where it fails this guard itself, no candidate can be promoted, and the sentence says so.
    """
    if (refusal := refuse_ungraded(guard)) is not None:
        return Decision(False, (*decision.reasons, refusal))
    passed = guard.guard_low > -margin
    digits = 2 if round(guard.guard_low, 2) != round(-margin, 2) else 4
    change = signed(guard.difference) if guard.gained != guard.lost else "no change"
    against = f" against {than}" if than else ""
    bounds = f"lower bound {signed(guard.guard_low, digits)}; allowed {signed(-margin, digits)}"
    reason = f"Guard {guard.name}{against}: {change} ({bounds}){'' if passed else ': not passed'}."
    if guard.before.accuracy == 0:
        reason += " The champion solved none, so this guard could not fail." if not than else ""
    elif guard.before.accuracy < margin and not than:
        reason += " The champion solves less than the margin, so this guard can hardly fail."
    flipped = (guard.gained + guard.lost) / guard.n
    if not passed and champion is not None and champion.guard_low <= -margin:
        reason += (
            f" The champion itself is below that margin ({signed(champion.difference)}), so nothing can be promoted: "
            "go back to an earlier version with `nightschool promote`, or accept it with a wider margin in exam.guards."
        )
    elif not passed and flipped and (chance := bad_luck(guard.n, margin, flipped)) > MOST_BAD_LUCK:
        reason += f" With {guard.n} problems, this refuses a candidate that is no worse in {chance:.0%} of such nights."
    return Decision(decision.promote and passed, (*decision.reasons, reason))


def refuse_ungraded(part: Comparison) -> str | None:
    """Return why a part allows no decision: too many pairs could not be graded, or there is none; None if it does."""
    pairs = part.n + part.nulls
    if part.nulls > MAX_NULL_SHARE * pairs:
        return f"{part.name}: the grader failed on {part.nulls} of {pairs} problems, more than 1 %: no decision."
    return None if part.n else f"{part.name}: no problem was answered: no decision."
