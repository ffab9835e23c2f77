"""Guidance: if the student hardly ever solves a level, its prompts include the beginning of a solution."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewards.hints import hint
from rewards.verifier import Problem
from tasks.rollouts.curriculum import HINTED

HARD = 0.1  # levels with a solve rate below this are hard, and only their problems are asked with a hint

Rates = Mapping[tuple[str, str | None, float], float]  # by benchmark, level, and share of the solution shown


@dataclass(frozen=True)
class Guide:
    """Decides how much of a problem's solution a round shows.

    `levels`: the solve rates so far. `shares`: the shares of a solution that a hint may show. At each level, every
    share has its own solve rate p and is drawn in proportion to p(1 − p). So a share is drawn less if it never helps,
    or if the student always succeeds with it; by then, the solve rate with shorter hints has risen. A share of 1 is not
    a hint: the solution replaces a sampled answer. Its p counts as `HARD`, so it is drawn most if no hint helps.
    """

    levels: Rates
    shares: Sequence[float]
    solutions: Mapping[Problem, str]
    program: bool = False

    def shown(self, problem: Problem, chance: random.Random) -> tuple[float, str]:
        """Draw how much of a problem's solution to show. Return the share and the text, or 0 and "" for none."""
        if problem not in self.solutions or not self._is_hard(problem):
            return 0.0, ""
        shares = (0.0, *self.shares)
        (share,) = chance.choices(shares, [_signal(self._rate(problem, share)) for share in shares])
        solution = self.solutions[problem]
        text = solution if share == 1 else hint(solution, share, self.program)
        return (share, text) if text else (0.0, "")

    def guess(self, problem: Problem) -> float | None:
        """Guess an untried problem's solve rate p, with the hint of largest p(1 − p); None if its level is untried."""
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
    """Return the kind of problems asked with this share of the solution as a hint; its solve rate is separate."""
    return f"{kind}{HINTED}{share:g}" if share else kind


def share_of(kind: str) -> float:
    """Return the share of the solution that the prompts of a kind show, or 0 if they have no hint."""
    return float(kind.partition(HINTED)[2] or 0.0)


def _signal(rate: float) -> float:
    return rate * (1 - rate)
