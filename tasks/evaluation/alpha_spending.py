"""α over the nights: the level of a night's test, and the promotions by luck that it implies."""

import math
from dataclasses import dataclass
from typing import Literal

A_YEAR = 365  # nights

Spending = Literal["fixed", "quadratic"]


@dataclass(frozen=True)
class Level:
    """The level of tonight's test, the `exams`-th on the same problems.

    `spent`: the sum of all levels so far, an upper bound on the expected promotions by luck. `false_promotions_a_year`:
    the same for the year from tonight on, if no candidate is better than its champion.
    """

    alpha: float
    exams: int
    spent: float
    false_promotions_a_year: float


def level(alpha: float, spending: Spending, earlier: int) -> Level:
    """Return the level of the test after `earlier` exams on the same problems.

    `fixed`: every night has all of `alpha`. `quadratic`: the k-th has α_k = 6α / (πk)²; all nights together have α, as
    Σ 1/k² = π²/6 (Euler 1735). It is the spending sequence of Foster & Stine 2008, "α-investing", section 2, without
    the reward that a rejection earns there.
    """
    tonight = earlier + 1
    year = [_nth(alpha, spending, exam) for exam in range(tonight, tonight + A_YEAR)]
    spent = sum(_nth(alpha, spending, exam) for exam in range(1, tonight + 1))
    return Level(year[0], tonight, spent, sum(year))


def _nth(alpha: float, spending: Spending, exam: int) -> float:
    return alpha if spending == "fixed" else 6 * alpha / (math.pi * exam) ** 2
