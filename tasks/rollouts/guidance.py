"""Guidance: prompts of a level that the student hardly ever solves include the beginning of the solution."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rewards.hints import hint
from rewards.verifier import Problem
from tasks.rollouts.curriculum import HINTED

HARD = 0.1  # solve rate; at or above it, problems are asked without a hint

Rates = Mapping[tuple[str, str | None, float], float]  # by benchmark, level, and share of the solution


@dataclass(frozen=True)
class Guide:
    """Decides how much of a benchmark's solutions a round shows.

    `levels`: the solve rates so far. `shares`: the shares of a solution that a hint may show. `solutions`: by training
    problem. Each share has its own solve rate p per level and is drawn in proportion to p(1 - p). A share that never
    helps dies out, and a mastered one gives way to a shorter hint, whose rate has risen by then. A share of 1 is not a
    hint: the solution replaces a sampled answer. Its rate counts as `HARD`, so it prevails if no hint helps.
    """

    levels: Rates
    shares: Sequence[float] = ()
    solutions: Mapping[Problem, str] = field(default_factory=dict)
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
        """Return the expected solve rate of an untried problem with its best hint, or None if its level is untried."""
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
    """Return the kind for problems shown with this share of the solution as a hint. It has a separate solve rate."""
    return f"{kind}{HINTED}{share:g}" if share else kind


def share_of(kind: str) -> float:
    """Return the share of the solution that is shown with problems of a kind."""
    return float(kind.partition(HINTED)[2] or 0.0)


def _signal(rate: float) -> float:
    return rate * (1 - rate)
