"""What the report shows of the learned reward, round by round."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.over_optimisation import unwatched
from tasks.report_evidence import read_json
from tasks.rounds import ranking_place, rounds

SAID = {"reward/learned_z", "reward/tie_breaker"}  # the one or the other, wherever the reward model said something


@dataclass(frozen=True)
class LearnedRound:
    """One row: of a block's start only the ranking is known; NaN is what was not measured. `unwatched`: why the block
    that it begins cannot be watched, if so.
    """

    number: int
    is_start: bool  # of the block of which it is the first round
    reward: float
    owner: float
    kl: float
    length: float
    ranking: float
    unwatched: str | None


def learned_rounds(night: Path) -> list[LearnedRound]:
    """The rounds in which the learned reward was in use; none where no reward model served."""
    found = []
    for number, folder in rounds(night):
        figures = read_json(folder / "checkpoint", "metrics.json") or {}
        if SAID & figures.keys():  # `reward/learned` is of answers that came to their end, which none may have
            if (start := night / ranking_place(number, number - 1)).exists():
                found.append(_row(number, {}, start, is_start=True))
            found.append(_row(number, figures, night / ranking_place(number, number)))
    return found


def _row(number: int, figures: dict[str, Any], ranked: Path, *, is_start: bool = False) -> LearnedRound:
    names = ("reward/learned", "reward/learned_owner", "kl", "reward/learned_length")
    reward, owner, kl, length = (float(figures.get(name, math.nan)) for name in names)
    found = read_json(ranked, "ranking.json") or {}
    accuracy = found.get("accuracy")
    ranking = math.nan if accuracy is None else float(accuracy)
    why = unwatched(found["right"]) if is_start and found else None
    return LearnedRound(number, is_start, reward, owner, kl, length, ranking, why)
