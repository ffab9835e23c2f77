"""Losses on whole answers' log-probabilities, relative to a reference policy: DPO for picks, KTO for ratings."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid


def dpo_loss(
    chosen: Float[Tensor, "pairs"],
    rejected: Float[Tensor, "pairs"],
    reference_chosen: Float[Tensor, "pairs"],
    reference_rejected: Float[Tensor, "pairs"],
    beta: float,
) -> tuple[Tensor, dict[str, float]]:
    """Return the mean over pairs of −log σ(β(log π/π_ref(chosen) − log π/π_ref(rejected))), and metrics.

    This is DPO, arXiv 2305.18290, equation 7. The inputs are log-probabilities summed over an answer's tokens, in nats.
    Metrics: `margin`, the mean of σ's argument, and `accuracy`, the share of pairs whose argument is above 0.
    """
    margin = beta * ((chosen - reference_chosen) - (rejected - reference_rejected))
    values = margin.detach()
    return -logsigmoid(margin).mean(), {"margin": float(values.mean()), "accuracy": float((values > 0).float().mean())}


def kto_loss(
    policy: Float[Tensor, "answers"],
    reference: Float[Tensor, "answers"],
    ratings: Float[Tensor, "answers"],
    kl: Tensor,
    *,
    beta: float,
    weights: tuple[float, float] = (1.0, 1.0),
) -> tuple[Tensor, dict[str, float]]:
    """Return the mean over answers of λ(1 − v), and metrics (KTO, arXiv 2402.01306, equations 7 and 8).

    v is σ(β(r − z)) for a desirable answer (rated above 0) and σ(β(z − r)) for an undesirable one. r is log π/π_ref of
    the whole answer; z is `kl`, which gets no gradient (see `kto_kl`). λ is the rating's size times the answer's weight
    in `weights`, (desirable, undesirable); in the paper all ratings are of size 1.
    Metrics: `kl`, and the mean of β r over the `desirable` and over the `undesirable` answers, if there are any.
    """
    ratio, kl, desirable = policy - reference, kl.detach(), ratings > 0
    size = ratings.abs() * torch.where(desirable, *weights)
    loss = (size * (1 - torch.sigmoid(ratings.sign() * beta * (ratio - kl)))).mean()
    rewards = {"desirable": beta * ratio.detach()[desirable], "undesirable": beta * ratio.detach()[~desirable]}
    return loss, {"kl": float(kl)} | {name: float(side.mean()) for name, side in rewards.items() if len(side)}


def kto_kl(policy: Float[Tensor, "pairs"], reference: Float[Tensor, "pairs"]) -> Tensor:
    """Return KTO's reference point: the mean of log π/π_ref over mismatched prompts and answers, but at least 0.

    This is a biased but cheap estimate of KL(π‖π_ref) (arXiv 2402.01306, section 4.1). It is 0 without pairs.
    """
    return (policy - reference).mean().clamp(min=0.0) if len(policy) else policy.new_zeros(())
