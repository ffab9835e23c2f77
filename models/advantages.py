"""Compute group-relative advantages, choose the completions to train on, and adjust the rewards of overlong ones."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from conf.schema import GrpoConfig

OVERLONG_SHARE, OVERLONG_PENALTY = 0.2, 1.0  # for `overlong: shape`: L_cache / L_max, and the largest penalty


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
