"""The sequential exam: when it looks at its answers, at which level, and what each look decides.

Candidate and champion answer the same problems in the same order. After 100, 200, 400, … of them the exam looks: it
ends as soon as the candidate is better beyond luck, or where it is not ahead.
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
NOT_AHEAD_FROM = 400  # problems, from which on a candidate that is not ahead ends the exam
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class Outlook:
    """What an exam comes to: the chance that it finds the candidate better, and the mean number of problems."""

    promoted: float
    problems: float


def looks(most: int) -> list[int]:
    """Return the numbers of answered problems at which an exam of at most `most` problems looks.

    They double from 100, and the last is `most`: a doubling value above two thirds of it is left out. Raises ValueError
    where `most` is below 1.
    """
    if most < 1:
        raise ValueError(f"an exam needs at least one problem, not {most}")
    doubling = [FIRST_LOOK]
    while 3 * doubling[-1] * 2 <= 2 * most:
        doubling.append(doubling[-1] * 2)
    return [*(look for look in doubling if 3 * look <= 2 * most), most]


def levels(looks: Sequence[int], alpha: float) -> list[float]:
    """Return each look's level; their sum is at most `alpha`.

    With t the share of the longest exam, α(t) = α · t² is spent up to a look (Kim and DeMets 1987, Biometrika 74), so
    look k has α(t_k) − α(t_{k−1}). By the union bound all looks together promote by luck with probability `alpha` at
    most, however their answers depend on each other. Raises ValueError where the looks do not ascend.
    """
    if not looks or looks[0] < 1 or any(later <= look for look, later in pairwise(looks)):
        raise ValueError(f"an exam's looks must ascend from at least 1: {list(looks)}")
    spent = [alpha * (look / looks[-1]) ** 2 for look in looks]
    shares = [now - before for now, before in zip(spent, [0.0, *spent], strict=False)]
    while max(sum(shares), math.fsum(shares)) > alpha:  # by rounding
        shares[-1] = math.nextafter(shares[-1], 0.0)
    return shares


def successor_alpha(alpha: float, unpromoted: int) -> float:
    """Return the level of a candidate that goes on from one that was ahead but unproven.

    `unpromoted`: how many such candidates it goes on from, one after the other; 0 where it began with the champion. It
    inherits its parents' luck on the same problems: at `alpha`, 0.040 of such candidates without any gain are promoted
    where α is 0.025, at half of it 0.021 (`python -m benchmarks.promotions`: the most over exams of 850 to 1,600
    problems, up to three parents, and shares of the flips that persist from 0.3 to 0.9).
    """
    return alpha / 2 if unpromoted else alpha


def verdict(look: int, gained: int, lost: int, looks: Sequence[int], alpha: float) -> Verdict:
    """Return what the exam says after `look` problems, of which `gained` and `lost` flipped to right and to wrong.

    By the one-sided exact McNemar test, as `verdict_of` has it. Raises ValueError where `look` is none of the looks,
    or more problems flipped than were answered.
    """
    if min(gained, lost) < 0 or gained + lost > look:
        raise ValueError(f"{gained} gained and {lost} lost are not flips of {look} problems")
    return verdict_of(look, mcnemar(gained, lost), gained > lost, looks, alpha)


def verdict_of(look: int, p_value: float, ahead: bool, looks: Sequence[int], alpha: float) -> Verdict:
    """Return what the exam says after `look` problems, by a one-sided test's p-value.

    *better*: it is at most the look's level. *not ahead*: it is not, and from 400 problems on, or at the last look, the
    candidate is not `ahead`. Else *undecided*: the exam goes on; at the last look, the candidate is ahead but unproven.
    Raises ValueError where `look` is none of the looks.
    """
    level = dict(zip(looks, levels(looks, alpha), strict=True)).get(look)
    if level is None:
        raise ValueError(f"{look} problems are none of the exam's looks: {', '.join(map(str, looks))}")
    if p_value <= level:
        return "better"
    return "not ahead" if not ahead and _may_end(look, looks) else "undecided"


def outlook(looks: Sequence[int], alpha: float, gain: float, share: float = USUAL_FLIPS) -> Outlook:
    """Return an exam's chance to find a true `gain` in accuracy where `share` of the answers flip, and its mean length.

    Exact: the joint distribution of gained and lost problems is carried from look to look, without the exams that have
    ended. Raises ValueError where the gain is larger than the share.
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
    """Return the smallest true gain in accuracy that an exam detects four times in five, if `share` of answers flip.

    Where so few flips could never suffice, all of them count as gains and there are as many as are needed. None where
    the exam is too small for any gain.
    """

    def surplus(gain: float, flips: float) -> float:
        return outlook(looks, alpha, gain, flips).promoted - POWER

    if surplus(share, share) >= 0:
        return float(root_scalar(lambda gain: surplus(gain, share), bracket=(0.0, share), xtol=1e-5).root)
    if surplus(1.0, 1.0) < 0:
        return None
    return float(root_scalar(lambda gain: surplus(gain, gain), bracket=(share, 1.0), xtol=1e-5).root)


def _may_end(look: int, looks: Sequence[int]) -> bool:
    return look >= min(NOT_AHEAD_FROM, looks[-1])


def _most(problems: int, share: float) -> int:
    """Return a number of flips that is not exceeded, but with negligible probability."""
    return int(binom.isf(_NEGLIGIBLE, problems, share))
