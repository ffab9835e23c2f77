"""Taste: whether the candidate ranks the owner's held-out picks better than the champion does."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.evaluation.statistics import Decision, mcnemar, probability
from tasks.stage import Artifact


@dataclass(frozen=True)
class Taste:
    """The owner's held-out picks, `n`, of which champion and candidate rank so many first, pick by pick.

    `gained`, `lost`: picks that flipped; `p_value`: of the exact one-sided test on them.
    """

    n: int
    before: int
    after: int
    gained: int
    lost: int
    p_value: float


def compare_taste(champion: Artifact | None, candidate: Artifact | None, level: float) -> Taste | None:
    """Compare two rankings of the same held-out picks; generated ones do not count.

    None without rankings, and with so few picks that no outcome would be significant at `level`: they must not take
    from the exam's α.
    """
    if champion is None or candidate is None:
        return None
    before, after = _ranked_first(champion), _ranked_first(candidate)
    if len(before) != len(after) or 0.5 ** len(before) > level:
        return None
    gained = sum(new and not old for old, new in zip(before, after, strict=True))
    lost = sum(old and not new for old, new in zip(before, after, strict=True))
    return Taste(len(before), sum(before), sum(after), gained, lost, mcnemar(gained, lost))


def with_taste(decision: Decision, taste: Taste, *, decides: bool) -> Decision:
    """Return the decision with a sentence on the owner's picks, and whether they decided."""
    reason = (
        f"Your held-out picks: the candidate ranks your choice first in {taste.after} of {taste.n}, the champion in "
        f"{taste.before} ({probability(taste.p_value)}){': your picks decide' if decides else ''}."
    )
    return Decision(decision.promote, (*decision.reasons, reason))


def _ranked_first(ranking: Artifact) -> Sequence[bool]:
    found = ranking.read_json("ranking.json")
    return [right for right, generated in zip(found["right"], found["generated"], strict=True) if not generated]
