"""Guidance: problems of a level that the student never solves are asked with the beginning of their solution."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rewards.hints import hint
from rewards.verifier import Problem
from tasks.rollouts.curriculum import HINTED

HARD = 0.1  # solve rate; where it is higher, problems are asked as they are

Rates = Mapping[tuple[str, str | None, float], float]  # by benchmark, level, and share of the solution


@dataclass(frozen=True)
class Guide:
    """Decides how much of a benchmark's solutions a round shows.

    `levels`: the solve rates so far. `shares`: of a solution, that a hint may have. `solutions`: by problem, of the
    training split. Each share of a level has a solve rate p of its own, and is drawn by p(1 - p): what is never solved
    starves, and what is mastered gives way to a shorter hint, whose rate has risen meanwhile. A share of 1 is no hint:
    the solution joins the student's own answers. It counts as a rate of `HARD`, so it prevails where no hint helps.
    """

    levels: Rates
    shares: Sequence[float] = ()
    solutions: Mapping[Problem, str] = field(default_factory=dict)
    program: bool = False

    def shown(self, problem: Problem, chance: random.Random) -> tuple[float, str]:
        """Return the share of its solution that is shown for a problem, and that text; 0 and "" for none."""
        if problem not in self.solutions or not self._is_hard(problem):
            return 0.0, ""
        shares = (0.0, *self.shares)
        (share,) = chance.choices(shares, [_signal(self._rate(problem, share)) for share in shares])
        solution = self.solutions[problem]
        text = solution if share == 1 else hint(solution, share, self.program)
        return (share, text) if text else (0.0, "")

    def guess(self, problem: Problem) -> float | None:
        """Return the solve rate to expect of a problem never tried, with its best hint; None where nothing is known."""
        if (plain := self.levels.get((problem.benchmark, problem.level, 0.0))) is None:
            return None
        if problem not in self.solutions or not self._is_hard(problem):
            return plain
        return max((plain, *(self._rate(problem, share) for share in self.shares)), key=_signal)

    def _is_hard(self, problem: Problem) -> bool:
        return self.levels.get((problem.benchmark, problem.level, 0.0), 1.0) < HARD

    def _rate(self, problem: Problem, share: float) -> float:
        if share == 1:
            return HARD
        return self.levels.get((problem.benchmark, problem.level, share), 0.5)


def hinted(kind: str, share: float) -> str:
    """Return the kind under which the solve rate of problems with a hint is counted."""
    return f"{kind}{HINTED}{share:g}" if share else kind


def share_of(kind: str) -> float:
    """Return the share of the solution that problems of a kind are asked with."""
    return float(kind.partition(HINTED)[2] or 0.0)


def _signal(rate: float) -> float:
    return rate * (1 - rate)
