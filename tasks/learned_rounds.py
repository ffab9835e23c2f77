"""What the report shows of the learned reward, round by round."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.report_evidence import read_json
from tasks.rounds import rounds


@dataclass(frozen=True)
class LearnedRound:
    """One row: of the start of the night (round 0) only the ranking is known; NaN is what was not measured."""

    number: int
    reward: float
    owner: float
    kl: float
    length: float
    ranking: float


def learned_rounds(night: Path) -> list[LearnedRound]:
    """The rounds in which the learned reward was in use; none where no reward model served."""
    found = [_row(0, {}, night / "rank_picks")]
    for number, folder in rounds(night):
        figures = read_json(folder / "checkpoint", "metrics.json") or {}
        if "reward/learned" in figures:
            found.append(_row(number, figures, folder / "rank_picks"))
    return found if len(found) > 1 else []


def _row(number: int, figures: dict[str, Any], ranked: Path) -> LearnedRound:
    names = ("reward/learned", "reward/learned_owner", "kl", "reward/learned_length")
    reward, owner, kl, length = (float(figures.get(name, math.nan)) for name in names)
    accuracy = (read_json(ranked, "ranking.json") or {}).get("accuracy")
    return LearnedRound(number, reward, owner, kl, length, math.nan if accuracy is None else float(accuracy))
