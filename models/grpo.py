"""The GRPO loss: a clipped policy gradient with group-relative advantages, corrected for sampler–policy mismatch."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from conf.schema import GrpoConfig

IMPOSSIBLE = -1e4  # nats: replaces a log-probability of −inf, so that differences stay finite
RATIO_CAP = 2.0  # the largest sampler-correction weight of a token
LOG_RATIO_LIMIT = 20.0  # nats: ratios are clamped to exp(±20), with no gradient beyond


def loss_denominator(completion_lengths: Sequence[int], config: GrpoConfig) -> float:
    """Return the number that divides an optimizer step's summed loss. The step may consist of several microbatches.

    With `aggregation: token`, it is the number of completion tokens (DAPO, arXiv 2503.14476, equation 8); with
    `sequence`, the number of completions (DeepSeekMath, arXiv 2402.03300, equation 3); with `constant`, the number of
    completions times `max_completion_tokens` (Dr. GRPO, arXiv 2503.20783, section 3.2). `completion_lengths`: how many
    tokens of each completion are trained on. Empty completions do not count. Returns 0 if there is nothing to train on.
    """
    if config.aggregation == "token":
        return float(sum(completion_lengths))
    completions = sum(length > 0 for length in completion_lengths)
    if config.aggregation == "sequence":
        return float(completions)
    return float(completions * config.max_completion_tokens)


def grpo_loss(
    policy_logprobs: Float[Tensor, "B T"],
    old_logprobs: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B"] | Float[Tensor, "B T"],
    completion_mask: Bool[Tensor, "B T"],
    *,
    config: GrpoConfig,
    denominator: float,
    kl_denominator: float | None = None,
    sampler_logprobs: Float[Tensor, "B T"] | None = None,
    ref_logprobs: Float[Tensor, "B T"] | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of a microbatch, and its metrics.

    A token's policy loss is −min(ρA, clip(ρ, 1 − clip_low, 1 + clip_high)A) (DeepSeekMath, arXiv 2402.03300, equation
    3; separate clip bounds: DAPO, arXiv 2503.14476, equation 8), times the token's weight from `sampler_weights`. A is
    the advantage; ρ is the ratio to the old policy, per token or per completion (see `importance_ratio`). The KL term
    is kl_coefficient times KL(π‖ref) (see `kl_estimate`). Both are averaged over each completion's tokens with
    `sequence` aggregation, and summed otherwise. The policy loss is divided by `denominator`, computed over the whole
    optimizer step (see `loss_denominator`); the KL term is divided by `kl_denominator` (default: `denominator`), which
    also covers groups without signal.

    Values at masked positions have no effect. A completion with a NaN advantage was not graded: it is left out, and the
    denominator must not count it. A completion whose mean sampler ratio is outside the band is masked, but the
    denominator counts it. Two equal log-probabilities have ratio 1, even if both are −inf. Ratios are clamped to
    exp(±20); clamped ratios and tokens of probability 0 have no gradient. A NaN from the policy makes the loss NaN.
    Metrics named `…_max` are maxima; the others are sums, to be divided by `tokens` or `sequences`.
    """
    mask = completion_mask.bool()
    advantages = (advantages if advantages.dim() == 2 else advantages[:, None]).expand_as(policy_logprobs)
    mask = mask & ~(advantages.isnan() & mask).any(dim=1, keepdim=True)
    advantages = advantages.where(mask, 0.0)
    policy, old = _possible(policy_logprobs, mask), _possible(old_logprobs, mask).detach()
    lengths = mask.sum(dim=1, keepdim=True).clamp(min=1)

    ratio = importance_ratio(policy, old, lengths, config)
    unclipped = ratio * advantages
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high) * advantages
    objective = torch.min(unclipped, clipped)
    counts = {"tokens": mask.sum(), "sequences": mask.any(dim=1).sum(), "clipped": (clipped < unclipped).sum()}
    if sampler_logprobs is not None:
        weight, kept, mismatch = sampler_weights(old, _possible(sampler_logprobs, mask), mask, config)
        objective = objective * weight
        mask = mask & kept[:, None]
        counts |= mismatch
    lengths = lengths if config.aggregation == "sequence" else 1
    loss = (-objective.where(mask, 0.0) / lengths).sum() / (denominator or 1.0)  # 0/0 counts as 0
    if ref_logprobs is not None and config.kl_coefficient > 0:
        kl = kl_estimate(policy.where(mask, 0.0), _possible(ref_logprobs, mask))
        divisor = denominator if kl_denominator is None else kl_denominator
        loss = loss + config.kl_coefficient * (kl.where(mask, 0.0) / lengths).sum() / (divisor or 1.0)
        counts["kl"] = kl.detach().sum()
    return loss, _floats(counts)


def importance_ratio(
    policy: Float[Tensor, "B T"], old: Float[Tensor, "B T"], lengths: Int[Tensor, "B 1"], config: GrpoConfig
) -> Float[Tensor, "B T"]:
    """Return ρ, the ratio of the policy to the old policy, for each token. Masked log-probabilities must be 0.

    With `importance: token`, ρ is exp(log π − log π_old) (DeepSeekMath, arXiv 2402.03300, equation 3). With `sequence`,
    ρ is the geometric mean s of these ratios over the completion (GSPO, arXiv 2507.18071, equation 7), written as in
    GSPO-token: sg[s] · π / sg[π], where sg stops the gradient (equation 14). Its value is s. Its gradient is that of s,
    too, if all tokens of a completion share one advantage and weight; if not, each token's gradient uses its own
    advantage and weight.
    """
    log_ratio = policy - old
    if config.importance == "sequence":
        mean = log_ratio.detach().sum(dim=1, keepdim=True) / lengths
        log_ratio = mean + (policy - policy.detach())
    return _bounded(log_ratio).exp()


def kl_estimate(policy: Float[Tensor, "B T"], ref: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Estimate KL(π‖ref), in nats, at each token sampled from π. The expected gradient is that of KL(π‖ref), too.

    The value is k3 = exp(d) − d − 1 with d = log ref − log π, clamped to ±20 (Schulman 2020, "Approximating KL
    divergence"; DeepSeekMath, arXiv 2402.03300, equation 4). The gradient is −d ∇log π, that of k2 = ½d²; the gradient
    of k3 would estimate that of KL(ref‖π) (Liu et al. 2025, "Rethinking KL regularization in RLHF", arXiv 2510.01555).
    """
    difference = _bounded(ref - policy).detach()
    k2_gradient = -difference * policy
    return (difference.exp() - difference - 1) + (k2_gradient - k2_gradient.detach())


def sampler_weights(
    old: Float[Tensor, "B T"], sampler: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], config: GrpoConfig
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B"], dict[str, Tensor]]:
    """Return weights and a mask that correct for the mismatch between sampler and policy, and metrics of the mismatch.

    Masked log-probabilities must be 0. (1) Each token's weight is min(π_old/μ, 2), where μ is the sampler (Yao et al.
    2025, "Your efficient RL framework secretly brings you off-policy RL training"). (2) The mask keeps a completion if
    the geometric mean of π_old/μ is in the band (Liu, Li et al. 2025, "When speed kills stability", part 3) and no
    sampler value is NaN. (3) The metrics are sums or maxima of |log π_old − log μ|, of π_old/μ, its square and its
    inverse, and of k3(μ‖π_old), and the number of masked completions.
    """
    unknown = sampler.isnan()
    difference = (old - sampler).where(mask & ~unknown, 0.0)
    mean = (difference.sum(dim=1) / mask.sum(dim=1).clamp(min=1)).exp()
    low, high = config.sampler_ratio_band
    # not `low <= mean <= high`, which would also mask, and thereby hide, a NaN from a broken policy
    kept = ~((mean < low) | (mean > high) | unknown.any(dim=1))
    bounded = _bounded(difference)
    ratio = bounded.exp()
    tokens = ratio.where(mask, 0.0)
    mismatch = {
        "mismatch": difference.abs().sum(),
        "mismatch_max": _largest(difference.abs()),
        "sampler_ratio": tokens.sum(),
        "sampler_ratio_squared": tokens.square().sum(),
        "sampler_ratio_max": _largest(tokens),
        "sampler_inverse_ratio_max": _largest((-bounded).exp().where(mask, 0.0)),
        "sampler_k3": (ratio - bounded - 1).sum(),
        "masked_sequences": (~kept).sum(),
    }
    return ratio.clamp(max=RATIO_CAP), kept, mismatch


def _possible(logprobs: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Return the log-probabilities, with 0 where masked and a finite floor in place of −inf."""
    return logprobs.where(mask, 0.0).clamp(min=IMPOSSIBLE)


def _bounded(log_ratio: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def _largest(values: Float[Tensor, "B T"]) -> Tensor:
    return values.max() if values.numel() else values.sum()


def _floats(counts: dict[str, Tensor]) -> dict[str, float]:
    """Return the metrics as plain numbers, copied from the device in one transfer."""
    return dict(zip(counts, torch.stack([count.double() for count in counts.values()]).tolist(), strict=True))
