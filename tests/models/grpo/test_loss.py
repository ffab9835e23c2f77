"""The GRPO loss worked out by hand: values, gradients, metrics, and what is left out of it."""

import math
from typing import Any

import pytest
import torch

from conf.schema import GrpoConfig
from models.grpo import loss_denominator
from tests.models.support.microbatches import evaluate

# --- by hand


@pytest.mark.parametrize(
    ("importance", "ratios", "advantages", "loss", "gradient"),
    [
        ("token", [1.0], [2.0], -2.0, [-2.0]),
        ("token", [1.1], [2.0], -2.2, [-2.2]),
        ("token", [1.5], [1.0], -1.28, [0.0]),  # enough of a good thing
        ("token", [1.5], [-1.0], 1.5, [1.5]),  # a bad token grew likelier: all of the gradient
        ("token", [0.5], [1.0], -0.5, [-0.5]),
        ("token", [0.5], [-1.0], 0.8, [0.0]),
        ("token", [1.25], [1.0], -1.25, [-1.25]),  # between 1.2 and 1.28: the upper clip is the wider one
        # one ratio a completion
        ("sequence", [1.5, 0.96], [1.0], -2.4, [-1.2, -1.2]),  # √(1.5 × 0.96) = 1.2, for either token
        ("sequence", [1.96, 1.0], [1.0], -2.56, [0.0, 0.0]),  # √1.96 = 1.4: clipped, though the second did not move
        ("sequence", [0.49, 1.0], [-1.0], 1.6, [0.0, 0.0]),
        ("sequence", [2.0, 0.5], [1.0], -2.0, [-1.0, -1.0]),  # one grew as much as the other shrank
        ("sequence", [1.96, 1.0], [[2.0, -1.0]], -1.16, [0.0, 1.4]),  # an advantage a token: −1.28 × 2 + 1.4
    ],
)
def test_clipped_ratios(
    importance: Any, ratios: list[float], advantages: list[Any], loss: float, gradient: list[float]
) -> None:
    old = torch.tensor([[-1.0, -2.0][: len(ratios)]])
    batch = {"policy": old + torch.tensor([ratios]).log(), "old": old, "advantages": torch.tensor(advantages)}
    found, slope, metrics = evaluate(batch, GrpoConfig(importance=importance), 1.0)
    assert found.item() == pytest.approx(loss)
    assert slope[0].tolist() == pytest.approx(gradient)
    assert metrics["clipped"] == gradient.count(0.0)


def test_the_weight_against_the_sampler_is_truncated_and_has_no_gradient() -> None:
    old = torch.log(torch.tensor([[0.9, 0.5, 0.5]]))
    sampler = torch.log(torch.tensor([[0.3, 0.5, 0.625]]))  # ratios 3 → 2, 1, 0.8
    batch = {"policy": old, "old": old, "advantages": torch.tensor([1.0]), "sampler": sampler}
    loss, slope, metrics = evaluate(batch, GrpoConfig(sampler_ratio_band=(0.1, 10.0)), 1.0)
    assert loss.item() == pytest.approx(-3.8)
    assert slope[0].tolist() == pytest.approx([-2.0, -1.0, -0.8])
    assert metrics["sampler_ratio"] == pytest.approx(4.8)  # the raw ones
    assert metrics["sampler_ratio_squared"] == pytest.approx(9 + 1 + 0.64)
    assert metrics["mismatch"] == pytest.approx(math.log(3) + math.log(1.25))
    assert metrics["mismatch_max"] == pytest.approx(math.log(3))
    assert metrics["sampler_ratio_max"] == pytest.approx(3)
    assert metrics["sampler_inverse_ratio_max"] == pytest.approx(1.25)
    assert metrics["sampler_k3"] == pytest.approx((3 - math.log(3) - 1) + (0.8 - math.log(0.8) - 1), rel=1e-4)


def test_completions_outside_the_band_are_masked_as_a_whole() -> None:
    """Geometric means 0.6 and 0.4: the second leaves [0.5, 2], its KL term with it."""
    old = torch.log(torch.tensor([[0.36, 0.5], [0.16, 0.5]]))
    sampler = torch.log(torch.tensor([[1.0, 0.5], [1.0, 0.5]]))
    ref = old - torch.tensor([[0.0], [1.0]])
    batch = {"policy": old, "old": old, "sampler": sampler, "ref": ref, "advantages": torch.ones(2)}
    loss, slope, metrics = evaluate(batch, GrpoConfig(kl_coefficient=0.5), 1.0)
    assert loss.item() == pytest.approx(-1.36)
    assert slope.flatten().tolist() == pytest.approx([-0.36, -1.0, 0.0, 0.0])
    assert metrics["masked_sequences"] == 1.0
    assert metrics["tokens"] == 4.0  # the denominator's tokens


# --- what is left out


@pytest.mark.parametrize("advantages", [[1.0, math.nan], [[1.0, 1.0], [2.0, math.nan]]])
def test_a_completion_that_was_not_graded_is_left_out(advantages: list[float]) -> None:
    """As a whole, where one token's advantage is no number; its own log-probabilities are worth nothing then."""
    policy = torch.tensor([[-1.0, -2.0], [-1.0, math.nan]])
    batch = dict.fromkeys(("policy", "old", "sampler", "ref"), policy) | {"advantages": torch.tensor(advantages)}
    loss, slope, metrics = evaluate(batch, GrpoConfig(kl_coefficient=0.1), 2.0)
    assert loss.item() == -1.0
    assert slope.tolist() == [[-0.5, -0.5], [0.0, 0.0]]
    assert (metrics["tokens"], metrics["sequences"], metrics["masked_sequences"]) == (2.0, 1.0, 0.0)


@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 0)])
def test_nothing_to_train_on(aggregation: str, shape: tuple[int, int]) -> None:
    """Completions without a token: a loss of 0 with no gradient, and a denominator of 0 that harms nothing."""
    config = GrpoConfig(aggregation=aggregation)
    assert loss_denominator([0] * shape[0], config) == 0.0
    batch = dict.fromkeys(("policy", "old", "sampler"), torch.full(shape, math.nan))
    batch |= {"advantages": torch.ones(shape[0]), "mask": torch.zeros(shape, dtype=torch.bool)}
    loss, slope, metrics = evaluate(batch, config, 0.0)
    assert loss == 0.0
    assert not slope.any()
    assert set(metrics.values()) == {0.0}
