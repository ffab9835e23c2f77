"""Group-relative advantages, and the rewards of completions near the length limit."""

from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from conf.schema import GrpoConfig


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
    `overlong_share`; a completion that was cut counts as longer than L_max. NaN stays NaN.
    """
    if config.overlong == "mask":
        return rewards.masked_fill(cut, float("nan"))
    if config.overlong == "shape":
        cache = config.overlong_share * config.max_completion_tokens
        beyond = (lengths.to(rewards.dtype) - (config.max_completion_tokens - cache)) / cache
        return rewards - config.overlong_penalty * beyond.clamp(0.0, 1.0).masked_fill(cut, 1.0)
    return rewards
