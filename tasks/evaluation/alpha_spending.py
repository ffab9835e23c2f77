"""α over the nights: which level the test of a night has, and how many promotions by luck that lets expect."""

import math
from dataclasses import dataclass
from typing import Literal

A_YEAR = 365  # nights

Spending = Literal["fixed", "quadratic"]


@dataclass(frozen=True)
class Level:
    """The level of tonight's test, the `exams`-th by the same problems.

    `spent`: the levels of all of them together, which bounds the promotions by luck so far. `false_promotions_a_year`:
    the same for the year that begins tonight, if no candidate of it is any better than its champion.
    """

    alpha: float
    exams: int
    spent: float
    false_promotions_a_year: float


def level(alpha: float, spending: Spending, earlier: int) -> Level:
    """The level after so many `earlier` exams.

    `fixed`: each night has all of `alpha`. `quadratic`: the k-th has α_k = 6α / (πk)², which is α in all, however many
    nights there will be: Σ 1/k² = π²/6 (Euler 1735). It is the spending sequence of Foster & Stine 2008, "α-investing",
    section 2, without the reward that a rejection earns there.
    """
    tonight = earlier + 1
    year = [_nth(alpha, spending, exam) for exam in range(tonight, tonight + A_YEAR)]
    spent = sum(_nth(alpha, spending, exam) for exam in range(1, tonight + 1))
    return Level(year[0], tonight, spent, sum(year))


def _nth(alpha: float, spending: Spending, exam: int) -> float:
    return alpha if spending == "fixed" else 6 * alpha / (math.pi * exam) ** 2
