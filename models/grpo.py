"""The GRPO loss: clipped policy gradient with group-relative advantages, corrected for the sampler."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from conf.schema import GrpoConfig

IMPOSSIBLE = -1e4  # nats: stands for the log-probability −inf, so that a difference of two is a number
LOG_RATIO_LIMIT = 20.0  # nats: a ratio ends at exp(±20) and has no gradient beyond


def loss_denominator(completion_lengths: Sequence[int], config: GrpoConfig) -> float:
    """What the summed loss of a whole optimizer step is divided by, however it is cut into microbatches.

    `token`: its completion tokens (DAPO, arXiv 2503.14476, equation 8); `sequence`: its completions
    (DeepSeekMath, arXiv 2402.03300, equation 3); `constant`: its completions times the longest allowed length
    (Dr. GRPO, arXiv 2503.20783, section 3).
    """
    if config.aggregation == "token":
        return float(sum(completion_lengths))
    if config.aggregation == "sequence":
        return float(len(completion_lengths))
    return float(len(completion_lengths) * config.max_completion_tokens)


def grpo_loss(
    policy_logprobs: Float[Tensor, "B T"],
    old_logprobs: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B"] | Float[Tensor, "B T"],
    completion_mask: Bool[Tensor, "B T"],
    *,
    config: GrpoConfig,
    denominator: float,
    sampler_logprobs: Float[Tensor, "B T"] | None = None,
    ref_logprobs: Float[Tensor, "B T"] | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """The loss of a microbatch, and what is worth watching in it.

    Per token −min(ρA, clip(ρ, 1 − clip_low, 1 + clip_high)A) with ρ = exp(π − π_old) (DeepSeekMath, arXiv
    2402.03300, equation 3; the two clips apart: DAPO, arXiv 2503.14476, equation 8), times the truncated
    importance weight min(exp(π_old − μ), cap) against the sampler μ (Yao et al. 2025, "Your efficient RL framework
    secretly brings you off-policy RL training"), plus kl_coefficient times the k3 estimate
    exp(ref − π) − (ref − π) − 1 (Schulman 2020, "Approximating KL divergence").

    Values where `completion_mask` is false have no influence, whatever they are. Two equal log-probabilities, −inf
    included, have the ratio 1; ratios end at exp(±20), and beyond have no gradient, nor has a token to which the policy
    gives no probability (−inf). A completion whose sampler log-probabilities are not numbers is masked. The metrics are
    sums over the microbatch's tokens (`tokens` of them) or sequences (`sequences`), except the extremes.
    """
    mask = completion_mask.bool()
    advantages = advantages if advantages.dim() == 2 else advantages[:, None]
    policy = policy_logprobs.where(mask, 0.0).clamp(min=IMPOSSIBLE)
    old = old_logprobs.where(mask, 0.0).clamp(min=IMPOSSIBLE).detach()
    advantages = advantages.expand_as(policy).where(mask, 0.0)

    ratio = _bounded(policy - old).exp()
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    objective = torch.min(ratio * advantages, clipped * advantages)
    metrics = {
        "tokens": float(mask.sum()),
        "sequences": float(mask.shape[0]),
        "clipped": float(((clipped * advantages < ratio * advantages) & mask).sum()),
    }
    if sampler_logprobs is not None:
        sampler = sampler_logprobs.where(mask, 0.0).clamp(min=IMPOSSIBLE)
        weight, kept, mismatch = sampler_weights(old, sampler, mask, config)
        objective = objective * weight.where(kept[:, None], 0.0)
        mask = mask & kept[:, None]
        metrics |= mismatch
    loss = -objective
    if ref_logprobs is not None and config.kl_coefficient > 0:
        difference = _bounded(ref_logprobs.where(mask, 0.0).clamp(min=IMPOSSIBLE) - policy.where(mask, 0.0))
        kl = torch.exp(difference) - difference - 1
        loss = loss + config.kl_coefficient * kl
        metrics["kl"] = float((kl.detach() * mask).sum())
    loss = loss.where(mask, 0.0)
    if config.aggregation == "sequence":
        loss = loss / completion_mask.sum(dim=1, keepdim=True).clamp(min=1)
    return loss.sum() / denominator, metrics


def sampler_weights(
    old: Float[Tensor, "B T"], sampler: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], config: GrpoConfig
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B"], dict[str, float]]:
    """Weights that make up for the sampler being not quite the policy.

    Returns the token weights min(exp(π_old − μ), cap), which sequences are kept (those whose geometric-mean ratio
    lies within the band), and the mismatch: sums over tokens of |π_old − μ|, of the ratio and its square, of k3(μ‖π).
    """
    difference = (old - sampler).where(mask, 0.0)
    ratio = _bounded(difference).exp()
    mean = difference.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    low, high = config.sampler_ratio_band
    kept = (mean.exp() >= low) & (mean.exp() <= high)
    tokens = ratio[mask]
    metrics = {
        "mismatch": float(difference.abs().sum()),
        "mismatch_max": float(difference.abs().max()) if difference.numel() else 0.0,
        "sampler_ratio": float(tokens.sum()),
        "sampler_ratio_squared": float(tokens.square().sum()),
        "sampler_k3": float((ratio - _bounded(difference) - 1)[mask].sum()),
        "masked_sequences": float((~kept).sum()),
    }
    return ratio.clamp(max=config.sampler_ratio_cap), kept, metrics


def _bounded(log_ratio: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
