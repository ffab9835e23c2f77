"""The GRPO loss against TRL's own code."""

from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import gmean
from torch import Tensor

from conf.schema import GrpoConfig
from tests.models.support.microbatches import (
    AGGREGATIONS,
    Batch,
    configs,
    evaluate,
    microbatches,
    rows_of,
)
from tests.models.support.trl_grpo import trl_loss, trl_sampler_weights


def with_gradient(batch: Batch, config: GrpoConfig, **keywords: Any) -> tuple[Tensor, Tensor, dict[str, float]]:
    """TRL's loss, its gradient with respect to the policy's log-probabilities, and its metrics."""
    policy = batch["policy"].clone().requires_grad_()
    loss, metrics = trl_loss(policy, batch, config, **keywords)
    return loss.detach(), torch.autograd.grad(loss, policy)[0], metrics


def assert_same(ours: tuple[Tensor, Tensor, Any], theirs: tuple[Tensor, Tensor, Any], factor: float = 1.0) -> None:
    """Loss and gradient, TRL's times `factor`."""
    torch.testing.assert_close(ours[0], theirs[0] * factor, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours[1], theirs[1] * factor, atol=1e-5, rtol=1e-5)


def without_sampler(batch: Batch) -> Batch:
    return {name: value for name, value in batch.items() if name != "sampler"}


@pytest.mark.parametrize(
    ("aggregation", "loss_type"),
    [("token", "dapo"), ("token", "bnpo"), ("sequence", "grpo"), ("constant", "dr_grpo"), ("constant", "luspo")],
)
def test_loss_and_gradient(aggregation: Any, loss_type: str) -> None:
    """`bnpo` is `token` in a step of one microbatch; `luspo` is `constant` with a longest length of one token."""
    longest = 1 if loss_type == "luspo" else 37
    drawn = configs(aggregation=aggregation, max_completion_tokens=longest)

    @given(microbatches(holes=True), drawn, st.floats(0.01, 0.5), st.floats(0.01, 0.5))
    def compare(batch: Batch, config: GrpoConfig, low: float, high: float) -> None:
        config = config.model_copy(update={"clip_low": low, "clip_high": high})
        ours = evaluate(without_sampler(batch), config)
        theirs = with_gradient(batch, config, loss_type=loss_type)
        assert_same(ours, theirs)
        if config.kl_coefficient:
            assert ours[2]["kl"] / ours[2]["tokens"] == pytest.approx(theirs[2]["kl"], abs=1e-5)
        if config.importance == "token":
            share = ours[2]["clipped"] / ours[2]["tokens"]
            assert share == pytest.approx(theirs[2]["clip_ratio/region_mean"], abs=1e-6)

    compare()


@given(microbatches(per_token=True, holes=True), configs())
def test_an_advantage_for_each_token(batch: Batch, config: GrpoConfig) -> None:
    """One ratio a completion: TRL's value; its gradient, which averages advantages, only in GSPO-token's form."""
    ours = evaluate(without_sampler(batch), config)
    torch.testing.assert_close(ours[0], with_gradient(batch, config)[0], atol=1e-5, rtol=1e-5)
    assert_same(ours, with_gradient(as_gspo_token(batch, config), config, level="token"))


@given(microbatches(), configs(sampler_ratio_band=(0.0, 1e30)), st.sampled_from([1.05, 2.0]))
def test_token_weights_against_the_sampler(batch: Batch, config: GrpoConfig, cap: float) -> None:
    """TRL's `token_truncate`. With one ratio a completion, a token's weight is in its own gradient: GSPO-token."""
    config = config.model_copy(update={"sampler_ratio_cap": cap})
    ours = evaluate(batch, config)
    weights = trl_sampler_weights(batch, "token_truncate", largest=cap)
    if config.importance == "sequence":
        torch.testing.assert_close(ours[0], with_gradient(batch, config, weights=weights)[0], atol=1e-5, rtol=1e-5)
    assert_same(ours, with_gradient(as_gspo_token(batch, config), config, weights=weights, level="token"))


def as_gspo_token(batch: Batch, config: GrpoConfig) -> Batch:
    """With old log-probabilities for which TRL's ratio of each token is sg[s] · π / sg[π] (GSPO, equation 14)."""
    if config.importance == "token":
        return batch
    ratio = (batch["policy"] - batch["old"]) * batch["mask"]
    return batch | {"old": batch["policy"] - ratio.sum(dim=1, keepdim=True) / batch["mask"].sum(dim=1, keepdim=True)}


@given(microbatches(), st.sampled_from(AGGREGATIONS))
def test_whole_completions_masked_against_the_sampler(batch: Batch, aggregation: Any) -> None:
    """TRL masks by the product of the ratios and weights with it: the same for completions of one token."""
    config = GrpoConfig(aggregation=aggregation, sampler_ratio_cap=1e9, sampler_ratio_band=(0.9, 1.05))
    first = {name: value[:, :1] if value.dim() == 2 else value for name, value in batch.items()}
    weights = trl_sampler_weights(first, "sequence_mask", largest=1.05, smallest=0.9)
    ours = evaluate(first, config)
    assert_same(ours, with_gradient(first, config, weights=weights))
    assert ours[2]["masked_sequences"] == (weights == 0).sum()


@given(microbatches(), configs(kl_coefficient=0.0, sampler_ratio_band=(0.95, 1.03)))
def test_the_band_is_of_the_geometric_mean(batch: Batch, config: GrpoConfig) -> None:
    """TRL's token weights, where scipy's geometric mean lies in the band, and 0 elsewhere."""
    ratios = (batch["old"].double() - batch["sampler"].double()).exp()
    means = torch.tensor([gmean(row[mask].numpy()) for row, mask in zip(ratios, batch["mask"], strict=True)])
    assume(((means - 0.95).abs() > 1e-5).all() and ((means - 1.03).abs() > 1e-5).all())
    kept = (means >= 0.95) & (means <= 1.03)
    weights = trl_sampler_weights(batch, "token_truncate", largest=2.0) * kept[:, None]
    ours = evaluate(batch, config)
    assert_same(ours, with_gradient(as_gspo_token(batch, config), config, weights=weights, level="token"))
    assert ours[2]["masked_sequences"] == (~kept).sum()


@given(microbatches(), st.sampled_from(AGGREGATIONS), st.data())
def test_truncated_completions_masked(batch: Batch, aggregation: Any, data: st.DataObject) -> None:
    """TRL clears their masks, and counts them still among the completions that it divides by."""
    config = GrpoConfig(aggregation=aggregation, kl_coefficient=0.04)
    count = len(batch["mask"])
    kept = data.draw(st.lists(st.sampled_from(range(count)), min_size=1, unique=True).map(sorted))
    cleared = batch | {"mask": batch["mask"] & torch.isin(torch.arange(count), torch.tensor(kept))[:, None]}
    factor = 1.0 if aggregation == "token" else count / len(kept)
    theirs = with_gradient(cleared, config)
    assert_same(evaluate(without_sampler(cleared), config), theirs, factor)
    loss, slope, _ = evaluate(without_sampler(rows_of(batch, kept)), config)
    assert_same((loss, slope, {}), (theirs[0], theirs[1][kept], {}), factor)
