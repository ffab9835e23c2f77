"""The GRPO loss against published implementations: TRL's own code, and the snapshots of Stanford's CS336."""

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import gmean
from torch import Tensor

from conf.schema import GrpoConfig
from models.packing.logprobs import token_logprobs
from tests.models.support.microbatches import (
    AGGREGATIONS,
    IMPORTANCES,
    Batch,
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
@pytest.mark.parametrize("importance", IMPORTANCES)
@pytest.mark.parametrize("coefficient", [0.0, 0.04])
def test_loss_and_gradient(aggregation: Any, loss_type: str, importance: Any, coefficient: float) -> None:
    """`bnpo` is `token` in a step of one microbatch; `luspo` is `constant` with a longest length of one token."""
    config = GrpoConfig(
        aggregation=aggregation,
        importance=importance,
        kl_coefficient=coefficient,
        max_completion_tokens=1 if loss_type == "luspo" else 37,
    )

    @given(microbatches(holes=True), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
    @settings(deadline=None, max_examples=30)
    def compare(batch: Batch, low: float, high: float) -> None:
        clips = config.model_copy(update={"clip_low": low, "clip_high": high})
        ours = evaluate(without_sampler(batch), clips)
        theirs = with_gradient(batch, clips, loss_type=loss_type)
        assert_same(ours, theirs)
        if coefficient:
            assert ours[2]["kl"] / ours[2]["tokens"] == pytest.approx(theirs[2]["kl"], abs=1e-5)
        if importance == "token":
            share = ours[2]["clipped"] / ours[2]["tokens"]
            assert share == pytest.approx(theirs[2]["clip_ratio/region_mean"], abs=1e-6)

    compare()


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("coefficient", [0.0, 0.04])
def test_an_advantage_for_each_token(aggregation: Any, coefficient: float) -> None:
    config = GrpoConfig(aggregation=aggregation, kl_coefficient=coefficient)

    @given(microbatches(per_token=True, holes=True))
    @settings(deadline=None, max_examples=30)
    def compare(batch: Batch) -> None:
        assert_same(evaluate(without_sampler(batch), config), with_gradient(batch, config))

    compare()


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("importance", IMPORTANCES)
@pytest.mark.parametrize("cap", [1.05, 2.0])
def test_token_weights_against_the_sampler(aggregation: Any, importance: Any, cap: float) -> None:
    """TRL's `token_truncate`. With one ratio a completion, a token's weight is in its own gradient: GSPO-token."""
    config = GrpoConfig(
        aggregation=aggregation,
        importance=importance,
        kl_coefficient=0.04,
        sampler_ratio_cap=cap,
        sampler_ratio_band=(0.0, 1e30),
    )

    @given(microbatches())
    @settings(deadline=None, max_examples=30)
    def compare(batch: Batch) -> None:
        ours = evaluate(batch, config)
        weights = trl_sampler_weights(batch, "token_truncate", largest=cap)
        if importance == "sequence":
            torch.testing.assert_close(ours[0], with_gradient(batch, config, weights=weights)[0], atol=1e-5, rtol=1e-5)
        assert_same(ours, with_gradient(as_gspo_token(batch, config), config, weights=weights, level="token"))

    compare()


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_one_ratio_a_completion_and_an_advantage_a_token(aggregation: Any) -> None:
    """TRL's value; its gradient, which averages the tokens' advantages, only in the form of GSPO-token."""
    config = GrpoConfig(aggregation=aggregation, importance="sequence", kl_coefficient=0.04)

    @given(microbatches(per_token=True, holes=True))
    @settings(deadline=None, max_examples=30)
    def compare(batch: Batch) -> None:
        ours = evaluate(without_sampler(batch), config)
        torch.testing.assert_close(ours[0], with_gradient(batch, config)[0], atol=1e-5, rtol=1e-5)
        assert_same(ours, with_gradient(as_gspo_token(batch, config), config, level="token"))

    compare()


def as_gspo_token(batch: Batch, config: GrpoConfig) -> Batch:
    """With old log-probabilities for which TRL's ratio of each token is sg[s] · π / sg[π] (GSPO, equation 14)."""
    if config.importance == "token":
        return batch
    ratio = (batch["policy"] - batch["old"]) * batch["mask"]
    return batch | {"old": batch["policy"] - ratio.sum(dim=1, keepdim=True) / batch["mask"].sum(dim=1, keepdim=True)}


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_whole_completions_masked_against_the_sampler(aggregation: Any) -> None:
    """TRL masks by the product of the ratios and weights with it: the same for completions of one token."""
    config = GrpoConfig(aggregation=aggregation, sampler_ratio_cap=1e9, sampler_ratio_band=(0.9, 1.05))

    @given(microbatches())
    @settings(deadline=None, max_examples=30)
    def compare(batch: Batch) -> None:
        first = {name: value[:, :1] if value.dim() == 2 else value for name, value in batch.items()}
        weights = trl_sampler_weights(first, "sequence_mask", largest=1.05, smallest=0.9)
        ours = evaluate(first, config)
        assert_same(ours, with_gradient(first, config, weights=weights))
        assert ours[2]["masked_sequences"] == (weights == 0).sum()

    compare()


@given(microbatches(), st.sampled_from(AGGREGATIONS), st.sampled_from(IMPORTANCES))
@settings(deadline=None, max_examples=60)
def test_the_band_is_of_the_geometric_mean(batch: Batch, aggregation: Any, importance: Any) -> None:
    """TRL's token weights, where scipy's geometric mean lies in the band, and 0 elsewhere."""
    config = GrpoConfig(aggregation=aggregation, importance=importance, sampler_ratio_band=(0.95, 1.03))
    ratios = (batch["old"].double() - batch["sampler"].double()).exp()
    means = torch.tensor([gmean(row[mask].numpy()) for row, mask in zip(ratios, batch["mask"], strict=True)])
    assume(((means - 0.95).abs() > 1e-5).all() and ((means - 1.03).abs() > 1e-5).all())
    kept = (means >= 0.95) & (means <= 1.03)
    weights = trl_sampler_weights(batch, "token_truncate", largest=2.0) * kept[:, None]
    ours = evaluate(batch, config)
    assert_same(ours, with_gradient(as_gspo_token(batch, config), config, weights=weights, level="token"))
    assert ours[2]["masked_sequences"] == (~kept).sum()


@given(microbatches(), st.sampled_from(AGGREGATIONS), st.data())
@settings(deadline=None, max_examples=60)
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


def test_entropy_of_cs336() -> None:
    torch.manual_seed(42)
    logits = torch.randn(2, 10, 100)
    expected = [
        [4.1573386, 4.25809, 4.2000027, 4.1944656, 4.106727, 4.0669866, 4.090223, 4.0061703, 4.149583, 4.099516],
        [4.282163, 3.8720474, 4.1143, 4.0242934, 4.2255774, 4.0835614, 4.2772403, 4.0522842, 4.2011576, 4.273294],
    ]
    _, entropies = token_logprobs(logits.view(20, 100), torch.eye(100), torch.zeros(20, dtype=torch.long))
    torch.testing.assert_close(entropies.view(2, 10), torch.tensor(expected), atol=1e-5, rtol=1e-5)
