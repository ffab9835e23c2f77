"""Group-relative advantages, the choice of completions to train on, and the treatment of overlong completions."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from conf.schema import GrpoConfig

OVERLONG_SHARE, OVERLONG_PENALTY = 0.2, 1.0  # for `overlong: shape`


def group_advantages(
    rewards: Float[Tensor, "groups size"], scale: Literal["none", "std"] = "none", epsilon: float = 1e-4
) -> Float[Tensor, "groups size"]:
    """Return A = reward − group mean, optionally divided by the group's standard deviation (n − 1) + epsilon.

    A completion with a NaN reward was not graded: it is left out of its group's mean, and its advantage is NaN, which
    the loss and the trainer skip. If a group has only one graded completion, or its rewards are all equal, the
    advantages of its graded completions are exactly 0, regardless of rounding in the mean.

    Sources: DeepSeekMath (arXiv 2402.03300), section 4.1.2, with the standard deviation; Dr. GRPO (arXiv 2503.20783),
    section 3.2, without it.
    """
    graded = ~rewards.isnan()
    count = graded.sum(dim=1, keepdim=True)
    known = rewards.nan_to_num(0.0)
    lowest = rewards.nan_to_num(float("inf")).amin(dim=1, keepdim=True)
    differ = ((known > lowest) & graded).any(dim=1, keepdim=True)  # `graded`: a NaN's 0 can be above the lowest
    centred = (known - known.sum(dim=1, keepdim=True) / count.clamp(min=1)).where(graded & differ, 0.0)
    if scale == "std":
        deviation = (centred.square().sum(dim=1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
        centred = centred / (deviation + epsilon)
    return centred.where(graded, float("nan"))


def most_varied(rewards: Float[Tensor, "groups size"], keep: int) -> Bool[Tensor, "groups size"]:
    """Return a mask of the `keep` completions per group to train on: those whose rewards have the largest variance.

    They have the group's highest and lowest rewards (the max-variance rule of PODS, arXiv 2504.13818). If answers are
    only right or wrong, half of those kept are right, provided that there are enough of each. If variances tie, the
    subset with more of the highest rewards is kept; if rewards tie, the completion with the lower index is. Ungraded
    completions (NaN) fill any places left. Raises ValueError unless `keep` is between 1 and the group size.
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
    """Return the rewards after applying `config.overlong`. `lengths`: in tokens. `cut`: whether cut off at the limit.

    `train`: no change. `mask`: NaN for completions that were cut off, which removes them from the baseline, the loss
    and its denominator (TRL's mask_truncated_completions keeps them in the baseline). `shape`: completions longer than
    L_max − L_cache tokens lose the penalty times min(1, (|y| − (L_max − L_cache)) / L_cache) (DAPO, arXiv 2503.14476,
    equation 13, with penalty 1), where |y| is the length, L_max is `max_completion_tokens`, and L_cache is a fifth of
    L_max. A completion that was cut off counts as longer than L_max. NaN stays NaN.
    """
    if config.overlong == "mask":
        return rewards.masked_fill(cut, float("nan"))
    if config.overlong == "shape":
        cache = OVERLONG_SHARE * config.max_completion_tokens
        beyond = (lengths.to(rewards.dtype) - (config.max_completion_tokens - cache)) / cache
        return rewards - OVERLONG_PENALTY * beyond.clamp(0.0, 1.0).masked_fill(cut, 1.0)
    return rewards
