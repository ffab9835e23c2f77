"""The curriculum: which kinds of problems a round draws, by what they taught so far (`grpo.choice`).

An arm is a kind of problem; where each problem is a kind of its own, its benchmark and level.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from rewards.verifier import Attempt, Score
from tasks.tables import ARMS, Row, table_rows

ARMS_FILE = "arms.parquet"
HINTED = " · hint "  # between a kind and the share of the solution that its problems are asked with


class Tried(NamedTuple):
    """A group of a round: its arm, the rewards of its graded completions, how much each solved, the tokens of all."""

    arm: str
    rewards: Sequence[float]
    solved: Sequence[float]
    tokens: int


def arm_of(kind: str, problem_id: str, benchmark: str, level: str | None) -> str:
    """Return a problem's arm: its kind; if each problem is a kind of its own, its benchmark and level, `math/Level 3`.

    Endless benchmarks have kinds that many problems share, and no problem's id. With a hint an arm is another one.
    """
    if not kind.startswith(problem_id):
        return kind
    of_all = benchmark if level is None or level != level else f"{benchmark}/{level}"
    return of_all + "".join(kind.partition(HINTED)[1:])


def next_arms(
    before: Sequence[Row], tried: Sequence[Tried], probabilities: Mapping[str, float], choice: str, rate: float
) -> list[Row]:
    """Return the arms after a round, as rows of the table ARMS.

    With the `choice` *signal*, the estimate follows the mean absolute advantage in the arm's groups (SEC, arXiv
    2505.14970) at `rate` (see `follow`). Other choices have none.
    """
    earlier = {row["arm"]: row for row in before}
    rows: list[Row] = []
    for arm in sorted({*earlier, *(group.arm for group in tried)}):
        groups = [group for group in tried if group.arm == arm and group.rewards]
        known = earlier.get(arm, {})
        estimate = known.get("estimate") if known.get("choice") == choice else None
        tokens = sum(group.tokens for group in tried if group.arm == arm)
        signal = fmean(_spread(group.rewards) for group in groups) if groups else None
        solved = fmean(fmean(group.solved) for group in groups) if groups else None
        if choice == "signal" and signal is not None:
            estimate = follow(estimate, signal, rate)
        rows.append(
            {"arm": arm, "choice": choice, "drawn": len([group for group in tried if group.arm == arm])}
            | {"probability": probabilities.get(arm), "tokens": tokens, "signal": signal}
            | {"solved": known.get("solved") if solved is None else solved, "estimate": estimate}
        )
    return rows


def tried(prompts: pd.DataFrame, attempts: Sequence[Attempt], scores: Sequence[Score]) -> list[Tried]:
    """Return a round's groups; `prompts`: of problems that have a verifier, rows of the table PROMPTS."""
    by_group: dict[int, list[tuple[Attempt, Score]]] = defaultdict(list)
    for attempt, score in zip(attempts, scores, strict=True):
        by_group[attempt.group].append((attempt, score))
    rows: Any = prompts.itertuples()
    found: list[Tried] = []
    for row in rows:
        graded = [score for _, score in by_group[row.group] if score.reward is not None and score.verdict != "given"]
        rewards = [score.reward for score in graded if score.reward is not None]
        tokens = sum(attempt.tokens for attempt, _ in by_group[row.group])
        arm = arm_of(row.kind, row.problem_id, row.benchmark, row.level)
        found.append(Tried(arm, rewards, [score.solved for score in graded], tokens))
    return found


def read_arms(folder: Path) -> list[Row]:
    """Return the arms that a score stage left; none of a night without."""
    file = folder / ARMS_FILE
    return table_rows(file, ARMS) if file.exists() else []


def estimates_of(rows: Sequence[Row], choice: str) -> dict[str, float]:
    """Return the arms' estimates for a choice."""
    return {row["arm"]: row["estimate"] for row in rows if row["choice"] == choice and row["estimate"] is not None}


def _spread(rewards: Sequence[float]) -> float:
    mean = fmean(rewards)
    return fmean(abs(reward - mean) for reward in rewards)


def weights_of(arms: Sequence[str], estimates: Mapping[str, float], exploration: float) -> list[float]:
    """Return each arm's probability: in proportion to its estimate, mixed with an even share for all.

    An arm without an estimate has the mean of the others. All are even where there is no estimate above 0.
    """
    usual = fmean(estimates.values()) if estimates else 0.0
    worth = [estimates.get(arm, usual) for arm in arms]
    total = sum(worth)
    if total <= 0:
        return [1 / len(arms) for _ in arms]
    return [(1 - exploration) * value / total + exploration / len(arms) for value in worth]


def follow(estimate: float | None, seen: float, rate: float) -> float:
    """Return an estimate moved by `rate` of the way to what was seen: TD(0) with a constant step."""
    return seen if estimate is None else estimate + rate * (seen - estimate)
