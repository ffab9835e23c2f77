"""The GRPO loss against TRL's own code."""

from typing import Any
from unittest.mock import patch

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from conf.schema import GrpoConfig
from tests.models.support.microbatches import Batch, configs, evaluate, microbatches, own_denominator
from tests.models.support.trl_grpo import trl_loss


def with_gradient(batch: Batch, config: GrpoConfig, **keywords: Any) -> tuple[Tensor, Tensor, dict[str, float]]:
    """TRL's loss, its gradient with respect to the policy's log-probabilities, and its metrics."""
    policy = batch["policy"].clone().requires_grad_()
    loss, metrics = trl_loss(policy, batch, config, **keywords)
    return loss.detach(), torch.autograd.grad(loss, policy)[0], metrics


@given(microbatches(holes=True), configs(max_completion_tokens=37), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_loss_and_gradient(batch: Batch, config: GrpoConfig, low: float, high: float) -> None:
    config = config.model_copy(update={"clip_low": low, "clip_high": high})
    ours = evaluate({name: value for name, value in batch.items() if name != "sampler"}, config)
    theirs = with_gradient(batch, config)
    torch.testing.assert_close(ours[0], theirs[0], atol=1e-5, rtol=1e-5)
    expected = with_gradient(batch, config.model_copy(update={"kl_coefficient": 0.0}))[1]
    pull = config.kl_coefficient * (batch["policy"] - batch["ref"]) * batch["mask"]  # TRL's is that of KL(ref‖π)
    if config.aggregation == "sequence":
        pull = pull / batch["mask"].sum(dim=1, keepdim=True)
    torch.testing.assert_close(ours[1], expected + pull / own_denominator(batch, config), atol=1e-5, rtol=1e-5)
    if config.kl_coefficient:
        assert abs(ours[2]["kl"] / ours[2]["tokens"] - theirs[2]["kl"]) < 1e-5
    if config.importance == "token":
        assert abs(ours[2]["clipped"] / ours[2]["tokens"] - theirs[2]["clip_ratio/region_mean"]) < 1e-6


@given(st.one_of(microbatches(), microbatches(per_token=True, holes=True)), configs(), st.sampled_from([1.05, 2.0]))
def test_weights_against_the_sampler(batch: Batch, config: GrpoConfig, cap: float) -> None:
    """With one ratio a completion, a token's weight and advantage are in its own gradient: GSPO-token."""
    config = config.model_copy(update={"kl_coefficient": 0.0, "sampler_ratio_band": (0.0, 1e30)})
    weights = (batch["old"] - batch["sampler"]).exp().clamp(max=cap)
    with patch("models.grpo.RATIO_CAP", cap):
        ours = evaluate(batch, config)
    if config.importance == "sequence":
        torch.testing.assert_close(ours[0], with_gradient(batch, config, weights=weights)[0], atol=1e-5, rtol=1e-5)
    theirs = with_gradient(as_gspo_token(batch, config), config, weights=weights, level="token")
    torch.testing.assert_close(ours[:2], theirs[:2], atol=1e-5, rtol=1e-5)


def as_gspo_token(batch: Batch, config: GrpoConfig) -> Batch:
    """With old log-probabilities for which TRL's ratio of each token is sg[s] · π / sg[π] (GSPO, equation 14)."""
    if config.importance == "token":
        return batch
    ratio = (batch["policy"] - batch["old"]) * batch["mask"]
    return batch | {"old": batch["policy"] - ratio.sum(dim=1, keepdim=True) / batch["mask"].sum(dim=1, keepdim=True)}
