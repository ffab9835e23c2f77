"""Losses of whole answers' log-probabilities, anchored at a reference policy: DPO for picks, KTO for praise."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid


def dpo_loss(
    picked: Float[Tensor, "pairs"],
    other: Float[Tensor, "pairs"],
    reference_picked: Float[Tensor, "pairs"],
    reference_other: Float[Tensor, "pairs"],
    beta: float,
) -> tuple[Tensor, dict[str, float]]:
    """The mean over pairs of −log σ(β(log π/π_ref(picked) − log π/π_ref(other))) (DPO, arXiv 2305.18290, equation 7).

    All four are sums over an answer's tokens, in nats. The metrics: `margin`, the mean of what is inside the σ, and
    `accuracy`, the share of pairs in which it is above 0.
    """
    margin = beta * ((picked - reference_picked) - (other - reference_other))
    found = margin.detach()
    return -logsigmoid(margin).mean(), {"margin": float(found.mean()), "accuracy": float((found > 0).float().mean())}


def kto_loss(
    policy: Float[Tensor, "answers"],
    reference: Float[Tensor, "answers"],
    desirable: Bool[Tensor, "answers"],
    kl: Tensor,
    *,
    beta: float,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> tuple[Tensor, dict[str, float]]:
    """The mean over answers of λ_y − v (KTO, arXiv 2402.01306, equations 7 and 8).

    v = λ_D σ(β(r − z)) for a desirable answer, λ_U σ(β(z − r)) for another, with r = log π/π_ref of the whole answer,
    and z = `kl`, which has no gradient (see `kto_kl`). The metrics: `kl`, and the mean of β r over the `desirable` and
    over the `undesirable` answers, where there are any.
    """
    ratio, kl = policy - reference, kl.detach()
    side = torch.where(desirable, 1.0, -1.0)
    weight = torch.where(desirable, desirable_weight, undesirable_weight)
    loss = (weight * (1 - torch.sigmoid(side * beta * (ratio - kl)))).mean()
    rewards = {"desirable": beta * ratio.detach()[desirable], "undesirable": beta * ratio.detach()[~desirable]}
    return loss, {"kl": float(kl)} | {name: float(own.mean()) for name, own in rewards.items() if len(own)}


def kto_kl(policy: Float[Tensor, "pairs"], reference: Float[Tensor, "pairs"]) -> Tensor:
    """KTO's reference point: log π/π_ref in the mean over prompts with the answers of others, and never below 0.

    A biased estimate of KL(π‖π_ref), of what is at hand (arXiv 2402.01306, section 4.1). 0 where there is no pair.
    """
    return (policy - reference).mean().clamp(min=0.0) if len(policy) else policy.new_zeros(())
