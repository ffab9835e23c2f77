"""Compute group-relative advantages, choose the completions to train on, and adjust the rewards of overlong ones.

In an episode, each turn has its own advantage: how much more it earned than was expected at that point. A group is then
G episodes with the same start. Episodes that reach the same state serve as each other's baselines.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from conf.schema import GrpoConfig
from models.td import gae

OVERLONG_SHARE, OVERLONG_PENALTY = 0.2, 1.0  # for `overlong: shape`: L_cache / L_max, and the largest penalty
GAMMA, LAMBDA = 0.99, 0.95  # discount per turn; trace decay for `credit: td`


def group_advantages(
    rewards: Float[Tensor, "groups size"], scale: Literal["none", "std"] = "none", epsilon: float = 1e-4
) -> Float[Tensor, "groups size"]:
    """Return each reward minus its group's mean reward, optionally divided by the group's standard deviation.

    A completion with a NaN reward was not graded. It does not count in its group's mean, and its advantage is NaN; the
    loss and the trainer skip it. If a group has only one graded completion, or all its rewards are equal, its graded
    completions get an advantage of exactly 0, even if the mean is inexact. `scale="std"` divides by the sample standard
    deviation (n − 1) plus `epsilon`.

    Sources: DeepSeekMath, arXiv 2402.03300, section 4.1.2 (`std`); Dr. GRPO, arXiv 2503.20783, section 3.2 (`none`).
    """
    graded = ~rewards.isnan()
    count = graded.sum(dim=1, keepdim=True)
    known = rewards.nan_to_num(0.0)
    lowest = rewards.nan_to_num(float("inf")).amin(dim=1, keepdim=True)
    differ = ((known > lowest) & graded).any(dim=1, keepdim=True)  # `graded` excludes NaNs, whose 0 may exceed it
    centred = (known - known.sum(dim=1, keepdim=True) / count.clamp(min=1)).where(graded & differ, 0.0)
    if scale == "std":
        deviation = (centred.square().sum(dim=1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
        centred = centred / (deviation + epsilon)
    return centred.where(graded, float("nan"))


def most_varied(rewards: Float[Tensor, "groups size"], keep: int) -> Bool[Tensor, "groups size"]:
    """Return a mask that selects from each group the `keep` completions whose rewards have the largest variance.

    They are the completions with the highest and the lowest rewards (the max-variance rule of PODS, arXiv 2504.13818).
    If rewards are 0 or 1, half of the selected completions are right, as long as a group has enough of each kind. If
    several subsets tie, the one with more of the highest rewards is selected; if rewards tie, lower indices go first.
    Ungraded completions (NaN) fill any places left. Raises ValueError unless `keep` is between 1 and the group size.
    """
    if not 1 <= keep <= rewards.shape[1]:
        raise ValueError(f"of {rewards.shape[1]} completions {keep} cannot be kept")
    kept = torch.zeros_like(rewards, dtype=torch.bool)
    for row, group in zip(kept, rewards.double(), strict=True):
        row[_most_varied(group, keep)] = True
    return kept


def _most_varied(rewards: Float[Tensor, "size"], keep: int) -> Int[Tensor, "keep"]:
    unknown = rewards.isnan().nonzero().flatten()
    graded = (~rewards.isnan()).nonzero().flatten()
    if len(graded) <= keep:
        return torch.cat([graded, unknown[: keep - len(graded)]])
    falling = graded[rewards[graded].argsort(descending=True, stable=True)]
    best, most = falling[:keep], -1.0
    for highest in range(keep, -1, -1):
        rest = falling[highest:].sort().values
        lowest = rest[rewards[rest].argsort(stable=True)][: keep - highest]
        chosen = torch.cat([falling[:highest], lowest])
        variance = float(rewards[chosen].var(correction=0))
        if variance > most * (1 + 1e-12) + 1e-300:
            best, most = chosen, variance
    return best


def overlong_rewards(
    rewards: Float[Tensor, "groups size"],
    lengths: Int[Tensor, "groups size"],
    cut: Bool[Tensor, "groups size"],
    config: GrpoConfig,
) -> Float[Tensor, "groups size"]:
    """Return the rewards, adjusted for length as `config.overlong` says. `cut`: whether the limit cut a completion off.

    `train`: no change. `mask`: a completion that was cut off gets NaN, which removes it from its group's mean, the loss
    and the loss's denominator (TRL's mask_truncated_completions keeps it in the mean). `shape`: a completion of |y|
    tokens (its entry in `lengths`) loses OVERLONG_PENALTY · min(1, (|y| − (L_max − L_cache)) / L_cache) if it is longer
    than L_max − L_cache, and the whole penalty if it was cut off. L_max is `max_completion_tokens`, and L_cache is a
    fifth of it (DAPO, arXiv 2503.14476, equation 13). NaN stays NaN.
    """
    if config.overlong == "mask":
        return rewards.masked_fill(cut, float("nan"))
    if config.overlong == "shape":
        cache = OVERLONG_SHARE * config.max_completion_tokens
        beyond = (lengths.to(rewards.dtype) - (config.max_completion_tokens - cache)) / cache
        return rewards - OVERLONG_PENALTY * beyond.clamp(0.0, 1.0).masked_fill(cut, 1.0)
    return rewards


class Visit(NamedTuple):
    """One turn of an episode. `key` identifies what the policy saw before the turn; `reward` is the turn's reward."""

    key: str
    reward: float


Group = Sequence[Sequence[Visit]]
Values = list[list[float]]


def state_values(group: Group, gamma: float = GAMMA) -> Values:
    """Return a value V for each visit: the mean return-to-go over all of the group's visits to the same state.

    If the group visits the state only once, V is the mean return-to-go of all its episodes at that turn number.
    """
    zeros = [[0.0] * len(episode) for episode in group]
    returns = td_advantages(group, zeros, gamma, 1.0)  # with λ = 1 and values of 0: G_t = r_t + γ·G_{t+1}
    by_key: dict[str, list[float]] = defaultdict(list)
    by_turn: dict[int, list[float]] = defaultdict(list)
    for episode, earned in zip(group, returns, strict=True):
        for turn, (visit, value) in enumerate(zip(episode, earned, strict=True)):
            by_key[visit.key].append(value)
            by_turn[turn].append(value)
    return [
        [
            fmean(by_key[visit.key] if len(by_key[visit.key]) > 1 else by_turn[turn])
            for turn, visit in enumerate(episode)
        ]
        for episode in group
    ]


def td_advantages(group: Group, values: Values, gamma: float, lam: float) -> Values:
    """Return Σ_k (γλ)^k δ_{t+k} for each turn t, with δ_t = r_t + γ·V_{t+1} − V_t. V is `values`, and 0 at the end."""
    return [
        gae([visit.reward for visit in episode], [*expected, 0.0], gamma, lam).tolist()
        for episode, expected in zip(group, values, strict=True)
    ]


def turn_advantages(group: Group, values: Values, episode_advantages: Float[Tensor, "G"], grpo: GrpoConfig) -> Values:
    """Return an advantage for each turn of a group's episodes, as `grpo.credit` says. `values`: from `state_values`."""
    if grpo.credit == "td":
        return td_advantages(group, values, GAMMA, LAMBDA)
    return [[whole] * len(episode) for whole, episode in zip(episode_advantages.tolist(), group, strict=True)]
