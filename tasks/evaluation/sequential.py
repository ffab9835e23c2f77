"""The sequential exam: when it looks at the answers, at which significance level, and which verdict each look gives.

Candidate and champion answer the same problems in the same order. The exam looks after 100, 200, 400, … problems. It
ends once the candidate is significantly better, or once the candidate is not ahead after 400 or more problems.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.optimize import root_scalar
from scipy.signal import fftconvolve
from scipy.stats import binom

from tasks.evaluation.statistics import POWER, USUAL_FLIPS, mcnemar

Verdict = Literal["better", "not ahead", "undecided"]

FIRST_LOOK = 100  # problems
NOT_AHEAD_FROM = 400  # problems; from here on, the exam ends if the candidate is not ahead
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class Outlook:
    """The probability that an exam finds the candidate better, and the mean number of problems that the exam takes."""

    promoted: float
    problems: float


def looks(most: int) -> list[int]:
    """Return the numbers of problems after which an exam of at most `most` problems looks at the answers.

    The numbers double from 100 up to two thirds of `most`; the last number is `most` itself. Raises ValueError if
    `most` is below 1.
    """
    if most < 1:
        raise ValueError(f"an exam needs at least one problem, not {most}")
    doubling = [FIRST_LOOK]
    while 3 * doubling[-1] * 2 <= 2 * most:
        doubling.append(doubling[-1] * 2)
    return [*(look for look in doubling if 3 * look <= 2 * most), most]


def levels(looks: Sequence[int], alpha: float) -> list[float]:
    """Return each look's significance level; the levels sum to at most `alpha`.

    The looks up to fraction t of the longest exam may spend α(t) = α · t² (Kim and DeMets 1987, Biometrika 74), so look
    k has the level α(t_k) − α(t_{k−1}). By the union bound, the probability that any look promotes by chance is at most
    `alpha`, whatever the dependence between the looks. Raises ValueError if the looks do not ascend.
    """
    if not looks or looks[0] < 1 or any(later <= look for look, later in pairwise(looks)):
        raise ValueError(f"an exam's looks must ascend from at least 1: {list(looks)}")
    spent = [alpha * (look / looks[-1]) ** 2 for look in looks]
    shares = [now - before for now, before in zip(spent, [0.0, *spent], strict=False)]
    while max(sum(shares), math.fsum(shares)) > alpha:  # rounding can make the sum too large
        shares[-1] = math.nextafter(shares[-1], 0.0)
    return shares


def successor_alpha(alpha: float, unpromoted: int) -> float:
    """Return a candidate's significance level: `alpha`, halved if the candidate was trained from an unpromoted one.

    `unpromoted`: how many unpromoted candidates in a row led to this one; 0 if it was trained from the champion. A
    successor inherits its parents' luck on the same problems. With α = 0.025, up to 4.0 % of the successors without any
    gain are promoted at α, but at most 2.1 % at α/2 (`python -m benchmarks.promotions`, for exams of 850 to 1,600
    problems, up to three parents, and 0.3 to 0.9 of the flips persisting from parent to successor).
    """
    return alpha / 2 if unpromoted else alpha


def verdict(look: int, gained: int, lost: int, looks: Sequence[int], alpha: float) -> Verdict:
    """Return the exam's verdict after `look` problems, of which `gained` became right and `lost` became wrong.

    Uses the p-value of the one-sided exact McNemar test. Raises ValueError if `look` is not one of the looks, or
    if more problems flipped than were answered.
    """
    if min(gained, lost) < 0 or gained + lost > look:
        raise ValueError(f"{gained} gained and {lost} lost are not flips of {look} problems")
    return verdict_of(look, mcnemar(gained, lost), gained > lost, looks, alpha)


def verdict_of(look: int, p_value: float, ahead: bool, looks: Sequence[int], alpha: float) -> Verdict:
    """Return the exam's verdict after `look` problems, given the p-value of a one-sided test.

    *better*: the p-value is at most the look's level. *not ahead*: the p-value is higher, and the candidate is not
    `ahead` after 400 or more problems or at the last look. *undecided*: any other case. The exam then continues with
    the next look or, after the last, ends with an unproven lead. Raises ValueError if `look` is not in `looks`.
    """
    level = dict(zip(looks, levels(looks, alpha), strict=True)).get(look)
    if level is None:
        raise ValueError(f"{look} problems are none of the exam's looks: {', '.join(map(str, looks))}")
    if p_value <= level:
        return "better"
    return "not ahead" if not ahead and _may_end(look, looks) else "undecided"


def outlook(looks: Sequence[int], alpha: float, gain: float, share: float = USUAL_FLIPS) -> Outlook:
    """Return an exam's `Outlook` if the true gain in accuracy is `gain` and a `share` of the answers flip.

    Computes the joint distribution of gained and lost problems at each look, leaving out exams that ended earlier. The
    result is exact except for negligible tails. Raises ValueError if the gain is larger than the share.
    """
    if not abs(gain) <= share <= 1:
        raise ValueError(f"a gain of {gain} cannot come from {share} of the answers")
    most = _most(looks[-1], (share + gain) / 2), _most(looks[-1], (share - gain) / 2)
    up, down = np.arange(most[0] + 1)[:, None], np.arange(most[1] + 1)[None, :]
    p_values = binom.sf(up - 1, up + down, 0.5)
    going_on = np.zeros((most[0] + 1, most[1] + 1))
    going_on[0, 0] = 1.0
    promoted, problems = 0.0, 0.0
    for before, look, level in zip([0, *looks], looks, levels(looks, alpha), strict=False):
        problems += (look - before) * going_on.sum()
        flips = binom.pmf(up + down, look - before, share) * binom.pmf(up, up + down, (share + gain) / (2 * share))
        going_on = fftconvolve(going_on, flips)[: most[0] + 1, : most[1] + 1]
        better = p_values <= level
        promoted += going_on[better].sum()
        going_on[better | (up <= down) if _may_end(look, looks) else better] = 0.0
    return Outlook(float(promoted), float(problems))


def smallest_gain(looks: Sequence[int], alpha: float, share: float = USUAL_FLIPS) -> float | None:
    """Return the smallest true gain in accuracy that an exam detects with 80 % power, if a `share` of the answers flip.

    If no gain is detectable at this `share`, assumes instead that every flip is a gain, so that the share equals the
    gain. Returns None if the exam is too small to detect any gain.
    """

    def surplus(gain: float) -> float:
        return outlook(looks, alpha, gain, max(gain, share)).promoted - POWER

    return float(root_scalar(surplus, bracket=(0.0, 1.0), xtol=1e-5).root) if surplus(1.0) >= 0 else None


def detects(looks: Sequence[int], alpha: float) -> str | None:
    """Return `a true gain of 0.04 four times in five if 15 % of the answers flip`, or None if no gain is detectable."""
    if (gain := smallest_gain(looks, alpha)) is None:
        return None
    flips = f"{100 * USUAL_FLIPS:.0f} % of the answers flip" if gain <= USUAL_FLIPS else "no answer becomes wrong"
    return f"a true gain of {gain:.2f} four times in five if {flips}"


def _may_end(look: int, looks: Sequence[int]) -> bool:
    return look >= min(NOT_AHEAD_FROM, looks[-1])


def _most(problems: int, share: float) -> int:
    """Return a number of flips that is exceeded with a probability of at most `_NEGLIGIBLE`."""
    return int(binom.isf(_NEGLIGIBLE, problems, share))
