"""The GRPO loss: by hand with gradients, against TRL, and the laws that make it safe to train on overnight."""

import math
import warnings
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from conf.schema import GrpoConfig
from models.grpo import grpo_loss, loss_denominator

AGGREGATIONS = ["token", "sequence", "constant"]
ONE = torch.ones(1, 1, dtype=torch.bool)


def loss_and_gradient(policy: Tensor, *arguments: Any, **keywords: Any) -> tuple[Tensor, Tensor, dict[str, float]]:
    policy = policy.clone().requires_grad_()
    loss, metrics = grpo_loss(policy, *arguments, **keywords)
    return loss.detach(), torch.autograd.grad(loss, policy)[0], metrics


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Tensor]:
    """Healthy microbatches: ragged completions, ratios around 1."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shape = (len(lengths), max(lengths))
    old = -3 * torch.rand(shape, generator=chance) - 0.05
    return {
        "policy": old + 0.4 * torch.randn(shape, generator=chance),
        "old": old,
        "advantages": torch.randn(len(lengths), generator=chance),
        "mask": torch.arange(shape[1]) < torch.tensor(lengths)[:, None],
        "sampler": old + 0.1 * torch.randn(shape, generator=chance),
        "ref": old + 0.5 * torch.randn(shape, generator=chance),
    }


def evaluate(batch: dict[str, Tensor], config: GrpoConfig, denominator: float) -> tuple[Tensor, Tensor, Any]:
    return loss_and_gradient(
        batch["policy"],
        batch["old"],
        batch["advantages"],
        batch["mask"],
        config=config,
        denominator=denominator,
        sampler_logprobs=batch["sampler"],
        ref_logprobs=batch["ref"],
    )


# --- by hand


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.2),
        (1.5, 1.0, -1.28, 0.0),  # enough of a good thing
        (1.5, -1.0, 1.5, 1.5),  # a bad token grew likelier: all of the gradient
        (0.5, 1.0, -0.5, -0.5),
        (0.5, -1.0, 0.8, 0.0),
        (1.25, 1.0, -1.25, -1.25),  # between 1.2 and 1.28: the upper clip is the wider one
        (1.5, 0.0, 0.0, 0.0),
    ],
)
def test_one_token(ratio: float, advantage: float, loss: float, gradient: float) -> None:
    old = torch.tensor([[-1.0]])
    found, slope, metrics = loss_and_gradient(
        old + math.log(ratio), old, torch.tensor([advantage]), ONE, config=GrpoConfig(), denominator=1.0
    )
    assert found.item() == pytest.approx(loss)
    assert slope.item() == pytest.approx(gradient)
    assert metrics["clipped"] == float(gradient == 0.0 and advantage != 0.0)


def test_the_three_aggregations() -> None:
    """Completions of 1 and 3 tokens with advantages 3 and −1 at ratio 1."""
    zeros = torch.zeros(2, 3)
    mask = torch.tensor([[True, False, False], [True, True, True]])
    expected = {
        "token": (0.0, [[-3 / 4, 0, 0], [1 / 4, 1 / 4, 1 / 4]]),  # (−3 + 1 + 1 + 1) / 4
        "sequence": (-1.0, [[-3 / 2, 0, 0], [1 / 6, 1 / 6, 1 / 6]]),  # (−3 + 1) / 2
        "constant": (0.0, [[-3 / 20, 0, 0], [1 / 20, 1 / 20, 1 / 20]]),  # ÷ (2 × 10)
    }
    for aggregation, (loss, gradient) in expected.items():
        config = GrpoConfig(aggregation=aggregation, max_completion_tokens=10)  # pyright: ignore
        denominator = loss_denominator([1, 3], config)
        found, slope, _ = loss_and_gradient(
            zeros, zeros, torch.tensor([3.0, -1.0]), mask, config=config, denominator=denominator
        )
        assert found.item() == pytest.approx(loss)
        torch.testing.assert_close(slope, torch.tensor(gradient))


def test_denominators() -> None:
    config = GrpoConfig(max_completion_tokens=48)
    assert loss_denominator([5, 7, 9], config) == 21.0
    assert loss_denominator([5, 7, 9], config.model_copy(update={"aggregation": "sequence"})) == 3.0
    assert loss_denominator([5, 7, 9], config.model_copy(update={"aggregation": "constant"})) == 144.0


def test_an_advantage_for_each_token() -> None:
    zeros = torch.zeros(1, 3)
    advantages = torch.tensor([[1.0, -2.0, math.nan]])
    mask = torch.tensor([[True, True, False]])
    loss, slope, _ = loss_and_gradient(zeros, zeros, advantages, mask, config=GrpoConfig(), denominator=1.0)
    assert loss.item() == 1.0
    assert slope.tolist() == [[-1.0, 2.0, 0.0]]


def test_the_weight_against_the_sampler_is_truncated_and_has_no_gradient() -> None:
    old = torch.log(torch.tensor([[0.9, 0.5, 0.5]]))
    sampler = torch.log(torch.tensor([[0.3, 0.5, 0.625]]))  # ratios 3 → 2, 1, 0.8
    mask = torch.ones(1, 3, dtype=torch.bool)
    config = GrpoConfig(sampler_ratio_band=(0.1, 10.0))
    loss, slope, metrics = loss_and_gradient(
        old, old, torch.tensor([1.0]), mask, config=config, denominator=1.0, sampler_logprobs=sampler
    )
    assert loss.item() == pytest.approx(-3.8)
    assert slope[0].tolist() == pytest.approx([-2.0, -1.0, -0.8])
    assert metrics["sampler_ratio"] == pytest.approx(4.8)  # the raw ones
    assert metrics["sampler_ratio_squared"] == pytest.approx(9 + 1 + 0.64)
    assert metrics["mismatch"] == pytest.approx(math.log(3) + math.log(1.25))
    assert metrics["mismatch_max"] == pytest.approx(math.log(3))
    assert metrics["sampler_k3"] == pytest.approx((3 - math.log(3) - 1) + (0.8 - math.log(0.8) - 1), rel=1e-4)


def test_completions_outside_the_band_are_masked_as_a_whole() -> None:
    """Geometric means 0.6 and 0.4: the second leaves [0.5, 2], its KL term with it."""
    old = torch.log(torch.tensor([[0.36, 0.5], [0.16, 0.5]]))
    sampler = torch.log(torch.tensor([[1.0, 0.5], [1.0, 0.5]]))
    mask = torch.ones(2, 2, dtype=torch.bool)
    config = GrpoConfig(kl_coefficient=0.5)
    loss, slope, metrics = loss_and_gradient(
        old,
        old,
        torch.tensor([1.0, 1.0]),
        mask,
        config=config,
        denominator=1.0,
        sampler_logprobs=sampler,
        ref_logprobs=old - torch.tensor([[0.0], [1.0]]),
    )
    assert loss.item() == pytest.approx(-1.36)
    assert slope.flatten().tolist() == pytest.approx([-0.36, -1.0, 0.0, 0.0])
    assert metrics["masked_sequences"] == 1.0
    assert metrics["tokens"] == 4.0  # the denominator's tokens


def test_kl_to_the_reference() -> None:
    """ref − π = ln 2: k3 = 2 − ln 2 − 1, and its gradient in π is 1 − 2."""
    policy = torch.log(torch.tensor([[0.25]]))
    ref = torch.log(torch.tensor([[0.5]]))
    config = GrpoConfig(kl_coefficient=0.1)
    loss, slope, metrics = loss_and_gradient(
        policy, policy, torch.tensor([0.0]), ONE, config=config, denominator=1.0, ref_logprobs=ref
    )
    assert loss.item() == pytest.approx(0.1 * (1 - math.log(2)))
    assert slope.item() == pytest.approx(-0.1)
    assert metrics["kl"] == pytest.approx(1 - math.log(2))
    loss, slope, metrics = loss_and_gradient(
        policy, policy, torch.tensor([0.0]), ONE, config=GrpoConfig(), denominator=1.0, ref_logprobs=ref
    )
    assert (loss, slope, "kl" in metrics) == (0.0, 0.0, False)


# --- against TRL


@pytest.fixture(scope="module")
def trl_loss() -> Any:
    """TRL's own loss, called with tensors in place of a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from trl import GRPOTrainer

    names = {"token": "dapo", "sequence": "grpo", "constant": "dr_grpo"}

    def compute(policy: Tensor, batch: dict[str, Tensor], config: GrpoConfig) -> Tensor:
        same = SimpleNamespace(gather=lambda x: x, reduce=lambda x, reduction: x, num_processes=1)
        trainer = SimpleNamespace(
            _get_per_token_logps_and_entropies=lambda *_, **__: (policy, torch.zeros_like(policy), None),
            aux_loss_enabled=False,
            top_entropy_quantile=1.0,
            off_policy_mask_threshold=None,
            importance_sampling_level="token",
            beta=config.kl_coefficient,
            args=SimpleNamespace(delta=None, use_bias_correction_kl=False),
            loss_type=names[config.aggregation],
            epsilon_low=config.clip_low,
            epsilon_high=config.clip_high,
            use_vllm=True,
            vllm_importance_sampling_correction=True,
            model=SimpleNamespace(training=False),
            max_completion_length=config.max_completion_tokens,
            accelerator=same,
            _entropy_bonus_enabled=False,
            _metrics={"eval": defaultdict(list)},
        )
        nothing = torch.zeros(len(policy), 1, dtype=torch.long)
        mask = batch["mask"].float()
        inputs = {
            "prompt_ids": nothing,
            "prompt_mask": nothing,
            "completion_ids": torch.zeros_like(policy, dtype=torch.long),
            "completion_mask": mask,
            "advantages": batch["advantages"],
            "old_per_token_logps": batch["old"],
            "ref_per_token_logps": batch["ref"],
            "importance_sampling_ratio": torch.exp(batch["old"] - batch["sampler"]).clamp(max=config.sampler_ratio_cap),
            "num_items_in_batch": mask.sum(),
        }
        return GRPOTrainer._compute_loss(trainer, None, inputs)  # pyright: ignore[reportArgumentType]

    return compute


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("coefficient", [0.0, 0.04])
def test_as_trl_computes_it(trl_loss: Any, aggregation: Any, coefficient: float) -> None:
    config = GrpoConfig(aggregation=aggregation, kl_coefficient=coefficient, sampler_ratio_cap=1.05)

    @given(batches())
    @settings(deadline=None, max_examples=30)
    def compare(batch: dict[str, Tensor]) -> None:
        loss, slope, _ = evaluate(batch, config, loss_denominator(batch["mask"].sum(dim=1).tolist(), config))
        policy = batch["policy"].clone().requires_grad_()
        expected = trl_loss(policy, batch, config)
        torch.testing.assert_close(loss, expected.detach(), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(slope, torch.autograd.grad(expected, policy)[0], atol=1e-5, rtol=1e-5)

    compare()


# --- laws


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_the_cut_into_microbatches_does_not_show(aggregation: Any) -> None:
    config = GrpoConfig(aggregation=aggregation, kl_coefficient=0.1)

    @given(batches(), st.randoms(use_true_random=False), st.integers(0, 3))
    @settings(deadline=None)
    def law(batch: dict[str, Tensor], chance: Any, padding: int) -> None:
        denominator = loss_denominator(batch["mask"].sum(dim=1).tolist(), config)
        whole, slope, metrics = evaluate(batch, config, denominator)
        rows = list(range(len(batch["mask"])))
        chance.shuffle(rows)
        cut = chance.randrange(len(rows) + 1)
        total, slopes, tokens = torch.tensor(0.0), torch.zeros_like(slope), 0.0
        for part in filter(None, (rows[:cut], rows[cut:])):
            piece = {
                name: torch.nn.functional.pad(value[part], (0, padding)) if value.dim() == 2 else value[part]
                for name, value in batch.items()
            }
            loss, partial, found = evaluate(piece, config, denominator)
            total, tokens = total + loss, tokens + found["tokens"]
            slopes[part] = partial[:, : slope.shape[1]]
            assert not partial[:, slope.shape[1] :].any()
        torch.testing.assert_close(total, whole, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(slopes, slope, atol=1e-6, rtol=1e-6)
        assert tokens == metrics["tokens"]

    law()


@given(batches(), st.sampled_from(AGGREGATIONS))
@settings(deadline=None)
def test_at_the_old_policy_it_is_reinforce_with_a_baseline(batch: dict[str, Tensor], aggregation: Any) -> None:
    config = GrpoConfig(aggregation=aggregation)
    lengths = batch["mask"].sum(dim=1, keepdim=True)
    denominator = loss_denominator(lengths.flatten().tolist(), config)
    _, slope, metrics = loss_and_gradient(
        batch["old"], batch["old"], batch["advantages"], batch["mask"], config=config, denominator=denominator
    )
    expected = -batch["advantages"][:, None] * batch["mask"] / denominator
    if aggregation == "sequence":
        expected = expected / lengths
    torch.testing.assert_close(slope, expected, atol=1e-6, rtol=1e-6)
    assert metrics["clipped"] == 0.0


@given(batches(), st.sampled_from(AGGREGATIONS), st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -1e30]))
@settings(deadline=None)
def test_masked_values_have_no_influence(batch: dict[str, Tensor], aggregation: Any, junk: float) -> None:
    config = GrpoConfig(aggregation=aggregation, kl_coefficient=0.1)
    batch["advantages"] = batch["advantages"][:, None].expand_as(batch["mask"]).clone()
    spoilt = {name: value.where(batch["mask"], junk) for name, value in batch.items() if name != "mask"}
    clean = evaluate(batch, config, 7.0)
    dirty = evaluate(spoilt | {"mask": batch["mask"]}, config, 7.0)
    assert clean[0].equal(dirty[0])
    assert clean[1].equal(dirty[1])
    assert clean[2] == dirty[2]


LOGPROBS = st.sampled_from([-math.inf, -3e38, -1e6, -800.0, -90.0, -21.0, -1.0, -1e-7, 0.0])


@given(st.data(), st.sampled_from(AGGREGATIONS), st.sampled_from([0.0, 0.5]))
@settings(deadline=None, max_examples=300)
def test_no_log_probability_makes_a_nan(data: st.DataObject, aggregation: Any, coefficient: float) -> None:
    rows, columns = 2, 3
    table = st.lists(st.lists(LOGPROBS, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    batch = {name: torch.tensor(data.draw(table)) for name in ("policy", "old", "sampler", "ref")}
    batch["advantages"] = torch.tensor(data.draw(st.lists(st.floats(-3, 3, width=32), min_size=2, max_size=2)))
    batch["mask"] = torch.ones(rows, columns, dtype=torch.bool)
    config = GrpoConfig(aggregation=aggregation, kl_coefficient=coefficient)
    loss, slope, metrics = evaluate(batch, config, 6.0)
    assert loss.isfinite()
    assert slope.isfinite().all()
    assert all(math.isfinite(value) for value in metrics.values())


def test_what_impossible_tokens_count() -> None:
    """Ratio 1 where both policies give no probability, 0 where only the new one does; neither has a gradient."""
    policy = torch.tensor([[-math.inf, -math.inf, -1.0]])
    old = torch.tensor([[-math.inf, -1.0, -1.0]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    loss, slope, _ = loss_and_gradient(policy, old, torch.tensor([1.0]), mask, config=GrpoConfig(), denominator=1.0)
    assert loss.item() == pytest.approx(-2.0)
    assert slope.tolist() == [[0.0, 0.0, -1.0]]


def test_a_nan_of_the_policy_is_not_hidden() -> None:
    """A broken model must show, so that the step is not taken."""
    policy = torch.tensor([[math.nan]])
    loss, _ = grpo_loss(policy, policy, torch.tensor([1.0]), ONE, config=GrpoConfig(), denominator=1.0)
    assert loss.isnan()


def test_a_sampler_that_reports_no_number_masks_only_its_completion() -> None:
    old = torch.full((2, 2), -1.0)
    sampler = torch.tensor([[-1.0, math.nan], [-1.0, -1.0]])
    mask = torch.ones(2, 2, dtype=torch.bool)
    loss, slope, metrics = loss_and_gradient(
        old, old, torch.tensor([1.0, 1.0]), mask, config=GrpoConfig(), denominator=4.0, sampler_logprobs=sampler
    )
    assert loss.item() == pytest.approx(-0.5)
    assert slope.tolist() == [[0.0, 0.0], [-0.25, -0.25]]
    assert metrics["masked_sequences"] == 1.0
