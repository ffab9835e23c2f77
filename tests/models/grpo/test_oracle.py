"""The GRPO loss against published implementations: TRL's own code, and the snapshots of Stanford's CS336."""

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
    loss_and_gradient,
    microbatches,
    own_denominator,
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


# --- TRL


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


# --- CS336, assignment 5 (github.com/stanford-cs336/assignment5-alignment, tests/_snapshots)


def cs336_inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Policy's and old log-probabilities, and advantages, as its tests draw them, each from the seed anew."""
    torch.manual_seed(42)
    policy = torch.randn(2, 10)
    torch.manual_seed(42)
    old = policy + torch.randn_like(policy)
    torch.manual_seed(42)
    rewards = torch.rand(2, 1)
    return policy, old, (rewards - rewards.mean(dim=0)).squeeze(1)


def each_token(policy: Tensor, old: Tensor, advantages: Tensor, config: GrpoConfig) -> Tensor:
    """The loss of every token by itself."""
    rows = [
        loss_and_gradient(p[None], o[None], a[None], torch.eye(1, dtype=torch.bool), config=config, denominator=1.0)[0]
        for p, o, a in zip(
            policy.reshape(-1, 1), old.reshape(-1, 1), advantages.repeat_interleave(policy.shape[1]), strict=True
        )
    ]
    return torch.stack(rows).view_as(policy)


@pytest.mark.parametrize(
    ("clips", "expected"),
    [
        (
            {"clip_low": 0.1, "clip_high": 0.1},
            """0.014730584 0.014730584 0.014730584 0.13439825 0.034932498
            0.014730584 0.014730584 0.014730584 0.014730584 0.03252176
            -0.018004114 -0.012855893 -0.018004114 -0.015697958 -0.018004114
            -0.006927032 -0.018004114 -0.018004114 -0.007329305 -0.018004114""",
        ),
        (
            {"clip_low": 0.9999, "clip_high": 10.0},  # the snapshot's lower end, 1 − 10, never clips
            """0.002383026 0.003698778 0.006649683 0.13439825 0.034932498
            0.005567626 0.007348424 0.003048549 0.011466463 0.03252176
            -0.026806554 -0.012855893 -0.020633467 -0.015697958 -0.02104926
            -0.006927032 -0.022309594 -0.024312742 -0.007329305 -0.030474354""",
        ),
    ],
    ids=["small_cliprange", "large_cliprange"],
)
def test_grpo_clip_loss_of_cs336(clips: Any, expected: str) -> None:
    found = each_token(*cs336_inputs(), GrpoConfig(**clips))
    torch.testing.assert_close(found.flatten(), torch.tensor([float(number) for number in expected.split()]))


def test_microbatch_train_step_of_cs336() -> None:
    """The mean over each completion's tokens, then over two completions and two accumulated microbatches."""
    policy, old, advantages = cs336_inputs()
    torch.manual_seed(42)
    mask = torch.rand_like(policy) > 0.5
    batch = {"policy": policy, "old": old, "advantages": advantages, "mask": mask}
    config = GrpoConfig(aggregation="sequence", clip_low=0.1, clip_high=0.1)
    loss, slope, _ = evaluate(batch, config, 2 * own_denominator(batch, config))
    assert loss.item() == pytest.approx(0.00440072, rel=1e-5)
    expected = torch.zeros(2, 10)
    expected[0, 3], expected[1, 1], expected[1, 3] = 0.005599928, -0.000401747, -0.000490561
    torch.testing.assert_close(slope, expected, atol=1e-8, rtol=1e-5)
