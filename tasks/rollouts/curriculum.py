"""The curriculum: which kinds of problems a round draws, given what they have taught so far (`grpo.choice`).

An arm is a kind of problem or, if each problem is its own kind, a level of a benchmark.
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
    """A group of a round: its arm, and the rewards of its graded completions."""

    arm: str
    rewards: Sequence[float]


def arm_of(kind: str, problem_id: str, benchmark: str, level: str | None) -> str:
    """Return a problem's arm: its kind or, if each problem is its own kind, its benchmark and level (`math/Level 3`).

    In endless benchmarks, many problems share a kind, whose name has no problem id. A hint makes a separate arm.
    """
    if not kind.startswith(problem_id):
        return kind
    of_all = benchmark if level is None or level != level else f"{benchmark}/{level}"
    return of_all + "".join(kind.partition(HINTED)[1:])


def next_arms(before: Arms, tried: Sequence[Tried], choice: str, rate: float) -> dict[str, dict[str, Any]]:
    """Return all arms after a round, by name, each with its number of groups `drawn`, its `signal` and its `estimate`.

    The signal is the groups' mean absolute advantage (SEC, arXiv 2505.14970), or None if nothing was graded. With
    `choice: signal`, the estimate follows the signal at `rate` (see `follow`) and guides the draw; else it is None.
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
    """Return a round's groups with their arms. `prompts`: the PROMPTS rows whose problems have a verifier."""
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
    """Return the estimates, by name, of the arms that have one."""
    return {name: arm["estimate"] for name, arm in arms.items() if arm["estimate"] is not None}


def _spread(rewards: Sequence[float]) -> float:
    mean = fmean(rewards)
    return fmean(abs(reward - mean) for reward in rewards)


def weights_of(worth: Sequence[float], exploration: float) -> list[float]:
    """Return probabilities proportional to `worth`, mixed with a uniform distribution of weight `exploration`.

    Without the uniform part, a kind that falls to 0 would never return. If the total worth is 0, the result is uniform.
    """
    total = sum(worth)
    if total <= 0:
        return [1 / len(worth) for _ in worth]
    return [(1 - exploration) * (value / total) + exploration / len(worth) for value in worth]


def follow(estimate: float | None, seen: float, rate: float) -> float:
    """Return the estimate moved by the fraction `rate` towards the value seen: TD(0) with a constant step size."""
    return seen if estimate is None else estimate + rate * (seen - estimate)
