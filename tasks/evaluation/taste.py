"""Taste: whether the candidate ranks the owner's held-out picks better than the champion does."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.evaluation.statistics import Decision, holm, mcnemar, probability
from tasks.stage import Artifact


@dataclass(frozen=True)
class Taste:
    """The owner's held-out picks, `n`, of which champion and candidate rank so many first.

    `gained`, `lost`: conversations in which the candidate ranks more of the picks first, or fewer: picks of one
    conversation are not independent. `p_value`: of the exact one-sided test on them.
    """

    n: int
    before: int
    after: int
    gained: int
    lost: int
    p_value: float


def compare_taste(champion: Artifact | None, candidate: Artifact | None, level: float) -> Taste | None:
    """Compare two rankings of the same held-out picks; generated ones do not count.

    None without rankings, and with so few conversations that no outcome would be significant at `level`: they must not
    take from the exam's α.
    """
    if champion is None or candidate is None:
        return None
    before, after = _ranked_first(champion), _ranked_first(candidate)
    if before.keys() != after.keys() or 0.5 ** len(before) > level:
        return None
    changes = [sum(after[opening]) - sum(before[opening]) for opening in before]
    gained, lost = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    old, new = ([right for rights in each.values() for right in rights] for each in (before, after))
    return Taste(len(old), sum(old), sum(new), gained, lost, mcnemar(gained, lost))


def with_taste(decision: Decision, taste: Taste, targets: Sequence[float], alpha: float) -> Decision:
    """Return the decision with a sentence on the owner's picks, which decided if no target would have alone."""
    decides = decision.promote and min(holm([*targets, taste.p_value])[:-1]) > alpha
    reason = (
        f"Your held-out picks: the candidate ranks your choice first in {taste.after} of {taste.n}, the champion in "
        f"{taste.before} ({probability(taste.p_value)}){': your picks decide' if decides else ''}."
    )
    return Decision(decision.promote, (*decision.reasons, reason))


def _ranked_first(ranking: Artifact) -> dict[str, list[bool]]:
    """Return whether each pick is ranked first, by the opening of its conversation."""
    found, by_opening = ranking.read_json("ranking.json"), defaultdict[str, list[bool]](list)
    for right, generated, opening in zip(found["right"], found["generated"], found["openings"], strict=True):
        if not generated:
            by_opening[opening].append(right)
    return dict(by_opening)
