"""Taste: whether the candidate favours the owner's held-out picks more than the champion does."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.evaluation.statistics import mcnemar, probability
from tasks.stage import Artifact

ALIKE = 1e-6  # standard deviations; smaller changes count as no change


@dataclass(frozen=True)
class Taste:
    """A comparison of champion and candidate by the owner's `n` held-out picks.

    `before`, `after`: how many picks the champion and the candidate rank first. `gained`, `lost`: in how many
    conversations the candidate favours the picks more, or less, than the champion does. A model's margin for a pick is
    how far its likelihood lies above that of the other answers, in their standard deviations: a model that has only
    become more certain, or less, gains nothing. The margins within a conversation are summed, because they are not
    independent. `p_value`: from the exact one-sided sign test on `gained` and `lost`.
    """

    n: int
    before: int
    after: int
    gained: int
    lost: int
    p_value: float


def compare_taste(champion: Artifact | None, candidate: Artifact | None, level: float) -> Taste | None:
    """Compare two rankings of the same held-out picks, ignoring generated picks.

    Returns None if a ranking is missing, if the conversations differ, or if there are too few conversations for any
    outcome to be significant at `level`: a test that cannot succeed must not use up a part of the exam's α.
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
    """Return the comparison's result as a sentence without its subject."""
    changed = taste.gained + taste.lost
    return (
        f"favours your choice more than the champion does in {taste.gained} of {changed} conversations "
        f"({probability(taste.p_value)}), and ranks it first in {taste.after} of {taste.n} picks, the champion in "
        f"{taste.before}"
    )


def own_picks(ranking: Mapping[str, Any], what: str) -> list[Any]:
    """Return the values of a ranking's field `what` for the owner's own picks, leaving out generated ones."""
    return [value for value, generated in zip(ranking[what], ranking["generated"], strict=True) if not generated]


def _margins(ranking: Artifact) -> dict[str, float]:
    """Return the sum of the picks' margins in each conversation, keyed by the conversation's opening."""
    found, margins = ranking.read_json("ranking.json"), defaultdict[str, float](float)
    for opening, margin in zip(own_picks(found, "openings"), own_picks(found, "margins"), strict=True):
        margins[opening] += margin
    return dict(margins)
