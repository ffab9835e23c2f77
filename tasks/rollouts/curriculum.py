"""The curriculum (`grpo.choice`): how often a round draws each kind of problem, given how much the kind has taught.

An arm is a kind of problem or, where every problem is a kind of its own, a level of a benchmark.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from conf.storage.durable import read_json
from rewards.verifier import Attempt, Score
from tasks.rollouts.verdicts import GIVEN
from tasks.tables import Row

ARMS = "arms.json"  # written by a score stage: see `next_arms`
HINTED = " · hint "  # separates a kind from the share of the solution that its prompts show

Arms = Mapping[str, Mapping[str, Any]]


class Tried(NamedTuple):
    """One group of a round: its arm, and the rewards of the graded completions that the student wrote."""

    arm: str
    rewards: Sequence[float]


def arm_of(kind: str, problem_id: str, benchmark: str, level: str | None) -> str:
    """Return the arm of a problem: its kind or, if that kind has no other problem, its benchmark and level.

    A kind has no other problem if its name starts with the problem's id. Problems with a hint have separate arms.
    """
    if not kind.startswith(problem_id):
        return kind
    of_all = benchmark if level is None or level != level else f"{benchmark}/{level}"
    return of_all + "".join(kind.partition(HINTED)[1:])


def next_arms(before: Arms, tried: Sequence[Tried], choice: str, rate: float) -> dict[str, dict[str, Any]]:
    """Return all arms after a round, by name. Each has its number of groups `drawn`, its `signal` and its `estimate`.

    The signal is the mean absolute advantage in the arm's groups (SEC, arXiv 2505.14970); None if nothing was graded.
    With `choice: signal`, the estimate follows the signal at `rate` (see `follow`); otherwise, it is None.
    """
    arms: dict[str, dict[str, Any]] = {}
    for arm in sorted({*before, *(group.arm for group in tried)}):
        drawn = [group.rewards for group in tried if group.arm == arm]
        signals = [_spread(rewards) for rewards in drawn if rewards]
        signal = fmean(signals) if signals else None
        estimate = before.get(arm, {}).get("estimate")
        if signal is not None:
            estimate = follow(estimate, signal, rate)
        arms[arm] = {"drawn": len(drawn), "signal": signal, "estimate": estimate if choice == "signal" else None}
    return arms


def tried(prompts: Sequence[Row], attempts: Sequence[Attempt], scores: Sequence[Score]) -> list[Tried]:
    """Return one `Tried` for each group. `prompts`: the rows of the prompts table whose problems have a verifier."""
    rewards: dict[int, list[float]] = defaultdict(list)
    for attempt, score in zip(attempts, scores, strict=True):
        if score.reward is not None and score.verdict != GIVEN:
            rewards[attempt.group].append(score.reward)
    names = ("kind", "problem_id", "benchmark", "level")
    return [Tried(arm_of(*(row[name] for name in names)), rewards[row["group"]]) for row in prompts]


def read_arms(folder: Path) -> Arms:
    """Return the arms that a score stage wrote, or an empty dict if it wrote none."""
    return read_json(folder / ARMS, {})


def estimates_of(arms: Arms) -> dict[str, float]:
    """Return the estimate of each arm that has one, by the arm's name."""
    return {name: arm["estimate"] for name, arm in arms.items() if arm["estimate"] is not None}


def _spread(rewards: Sequence[float]) -> float:
    mean = fmean(rewards)
    return fmean(abs(reward - mean) for reward in rewards)


def weights_of(worth: Sequence[float], exploration: float) -> list[float]:
    """Return probabilities proportional to `worth`, mixed with a uniform distribution of weight `exploration`.

    Without the uniform part, a kind of worth 0 would never be drawn again. If every worth is 0, the result is uniform.
    """
    total = sum(worth)
    if total <= 0:
        return [1 / len(worth) for _ in worth]
    return [(1 - exploration) * (value / total) + exploration / len(worth) for value in worth]


def follow(estimate: float | None, seen: float, rate: float) -> float:
    """Return the estimate after a TD(0) step: moved by `rate` of the way to `seen`, or `seen` if it was None."""
    return seen if estimate is None else estimate + rate * (seen - estimate)
