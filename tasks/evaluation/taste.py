"""Taste: whether the candidate favours the owner's held-out picks more than the champion does."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.evaluation.statistics import mcnemar, probability
from tasks.stage import Artifact

ALIKE = 1e-6  # nats per token; smaller changes are none


@dataclass(frozen=True)
class Taste:
    """The owner's held-out picks, `n`, of which champion and candidate rank so many first, `before` and `after`.

    `gained`, `lost`: conversations in which the candidate favours the picked answers more than the champion does, or
    less: by how much likelier they are than the others, nats per token, all picks of a conversation together, as they
    are not independent. `p_value`: of the exact one-sided sign test on them. Few picks would show nothing by their
    ranks alone, which a lesson seldom turns over.
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
    before, after = _margins(champion), _margins(candidate)
    if before.keys() != after.keys() or 0.5 ** len(before) > level:
        return None
    changes = [after[opening] - before[opening] for opening in before]
    gained, lost = sum(change > ALIKE for change in changes), sum(change < -ALIKE for change in changes)
    old, new = (own_picks(ranking.read_json("ranking.json"), "right") for ranking in (champion, candidate))
    return Taste(len(old), sum(old), sum(new), gained, lost, mcnemar(gained, lost))


def favours(taste: Taste) -> str:
    """Return what the comparison shows, without the sentence's subject."""
    changed = taste.gained + taste.lost
    return (
        f"favours your choice more than the champion does in {taste.gained} of {changed} conversations "
        f"({probability(taste.p_value)}), and ranks it first in {taste.after} of {taste.n} picks, the champion in "
        f"{taste.before}"
    )


def own_picks(ranking: Mapping[str, Any], what: str) -> list[Any]:
    """Return one of a ranking's values for the owner's own picks; generated ones do not count."""
    return [value for value, generated in zip(ranking[what], ranking["generated"], strict=True) if not generated]


def _margins(ranking: Artifact) -> dict[str, float]:
    """Return how much the picked answers are favoured, in all, by the opening of their conversation."""
    found, margins = ranking.read_json("ranking.json"), defaultdict[str, float](float)
    for opening, margin in zip(own_picks(found, "openings"), own_picks(found, "margins"), strict=True):
        margins[opening] += margin
    return dict(margins)
