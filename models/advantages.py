"""Group-relative advantages, which completions are trained on, and rewards near the length limit."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from conf.schema import GrpoConfig

OVERLONG_SHARE, OVERLONG_PENALTY = 0.2, 1.0  # of `overlong: shape`


def group_advantages(
    rewards: Float[Tensor, "groups size"], scale: Literal["none", "std"] = "none", epsilon: float = 1e-4
) -> Float[Tensor, "groups size"]:
    """Return A = r − mean(r of the group), optionally divided by the group's standard deviation (n − 1) + epsilon.

    A NaN reward was not graded: it takes no part in its group's baseline and its advantage is NaN, which the loss and
    the trainer leave out. A group with a single graded completion, or with equal rewards, has advantages of exactly 0,
    whatever their mean is rounded to.

    Sources: DeepSeekMath (arXiv 2402.03300), section 4.1.2, with the deviation; Dr. GRPO (arXiv 2503.20783),
    section 3.2, without.
    """
    graded = ~rewards.isnan()
    count = graded.sum(dim=1, keepdim=True)
    known = rewards.nan_to_num(0.0)
    lowest = rewards.nan_to_num(float("inf")).amin(dim=1, keepdim=True)
    differ = ((known > lowest) & graded).any(dim=1, keepdim=True)  # an ungraded 0 is above negative rewards
    centred = (known - known.sum(dim=1, keepdim=True) / count.clamp(min=1)).where(graded & differ, 0.0)
    if scale == "std":
        deviation = (centred.square().sum(dim=1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
        centred = centred / (deviation + epsilon)
    return centred.where(graded, float("nan"))


def most_varied(rewards: Float[Tensor, "groups size"], keep: int) -> Bool[Tensor, "groups size"]:
    """Return which `keep` completions of each group are trained on: those whose rewards have the largest variance.

    They are some of the highest rewards and the rest from the lowest (the max-variance rule of PODS, arXiv 2504.13818):
    with right and wrong answers half of each, where there are as many. Between equal choices the one with more of the
    highest decides, and between equal rewards the lower index. Completions that were not graded (NaN) come last. Raises
    ValueError where a group has fewer than `keep` completions.
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
    """Return the rewards after `config.overlong`. `lengths`: in tokens; `cut`: whether the length limit ended it.

    `train`: unchanged. `mask`: NaN for completions that were cut, which takes them out of the baseline, the loss and
    its denominator (TRL's mask_truncated_completions leaves them in the baseline). `shape`: minus the penalty times
    min(1, (|y| − (L_max − L_cache)) / L_cache) for a completion of more than L_max − L_cache tokens (DAPO, arXiv
    2503.14476, equation 13, with the penalty 1), where L_max is `max_completion_tokens` and L_cache its last
    fifth; a completion that was cut counts as longer than L_max. NaN stays NaN.
    """
    if config.overlong == "mask":
        return rewards.masked_fill(cut, float("nan"))
    if config.overlong == "shape":
        cache = OVERLONG_SHARE * config.max_completion_tokens
        beyond = (lengths.to(rewards.dtype) - (config.max_completion_tokens - cache)) / cache
        return rewards - OVERLONG_PENALTY * beyond.clamp(0.0, 1.0).masked_fill(cut, 1.0)
    return rewards
