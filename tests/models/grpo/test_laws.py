"""Laws of the GRPO loss, and what it makes of log-probabilities that no healthy model gives."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conf.schema import GrpoConfig
from tests.models.support.microbatches import Batch, configs, evaluate, microbatches, own_denominator, rows_of

BATCHES = st.one_of(microbatches(), microbatches(per_token=True), microbatches(holes=True))
LOGPROBS = st.sampled_from([-math.inf, -3e38, -1e6, -800.0, -90.0, -21.0, -1.0, -1e-7, 0.0])


@given(BATCHES, configs(), st.randoms(use_true_random=False), st.integers(0, 3))
def test_neither_cut_nor_order_nor_padding_shows(batch: Batch, config: GrpoConfig, chance: Any, padding: int) -> None:
    """In microbatches of any sizes, the rows shuffled, each padded further: the same loss, the same gradients."""
    denominator = own_denominator(batch, config)
    whole, slope, metrics = evaluate(batch, config, denominator)
    rows = list(range(len(batch["mask"])))
    chance.shuffle(rows)
    cuts = sorted(chance.randrange(len(rows) + 1) for _ in range(2))
    total, slopes, sums = torch.tensor(0.0), torch.full_like(slope, math.nan), dict.fromkeys(metrics, 0.0)
    for part in filter(None, (rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :])):
        loss, partial, found = evaluate(rows_of(batch, part, padding), config, denominator)
        total += loss
        slopes[part] = partial[:, : slope.shape[1]]
        assert not partial[:, slope.shape[1] :].any()
        for name, value in found.items():
            sums[name] = max(sums[name], value) if name.endswith("_max") else sums[name] + value
    torch.testing.assert_close(total, whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(slopes, slope, atol=1e-6, rtol=1e-6)
    assert sums == pytest.approx(metrics, abs=1e-4, rel=1e-5)


@given(BATCHES, configs(kl_coefficient=0.0), st.data())
def test_a_group_without_advantage_adds_exactly_nothing(batch: Batch, config: GrpoConfig, data: st.DataObject) -> None:
    """Not a bit to the loss or to anyone's gradient, however far from the old policy or the sampler it is."""
    size = len(batch["mask"])
    extreme = st.lists(st.lists(LOGPROBS, min_size=6, max_size=6), min_size=size, max_size=size)
    width = batch["mask"].shape[1]
    dull = {name: torch.tensor(data.draw(extreme))[:, :width] for name in ("policy", "old", "sampler")}
    dull |= {"ref": batch["ref"], "mask": batch["mask"], "advantages": torch.zeros_like(batch["advantages"])}
    loss, slope, _ = evaluate(batch, config, 7.0)
    for first in (True, False):
        both = {name: torch.cat([dull[name], batch[name]] if first else [batch[name], dull[name]]) for name in batch}
        found, slopes, _ = evaluate(both, config, 7.0)
        own, others = (slopes[:size], slopes[size:]) if first else (slopes[size:], slopes[:size])
        assert not own.any()
        assert others.equal(slope)
        torch.testing.assert_close(found, loss, atol=1e-6, rtol=1e-6)  # summed in another order
    alone, slope, _ = evaluate(dull, config, 7.0)
    assert alone == 0.0
    assert not slope.any()


@given(
    microbatches(per_token=True, holes=True),
    configs(),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0]),
)
def test_masked_values_have_no_influence(batch: Batch, config: GrpoConfig, junk: float) -> None:
    spoilt = {name: value.where(batch["mask"], junk) for name, value in batch.items() if name != "mask"}
    clean = evaluate(batch, config)
    dirty = evaluate(spoilt | {"mask": batch["mask"]}, config)
    assert clean[0].equal(dirty[0])
    assert clean[1].equal(dirty[1])
    assert clean[2] == dirty[2]


# --- extreme log-probabilities


@given(st.data(), configs())
@settings(max_examples=300)
def test_no_log_probability_makes_a_nan(data: st.DataObject, config: GrpoConfig) -> None:
    rows, columns = 2, 3
    table = st.lists(st.lists(LOGPROBS, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    batch = {name: torch.tensor(data.draw(table)) for name in ("policy", "old", "sampler", "ref")}
    batch["advantages"] = torch.tensor(data.draw(st.lists(st.floats(-3, 3, width=32), min_size=2, max_size=2)))
    batch["mask"] = torch.ones(rows, columns, dtype=torch.bool)
    loss, slope, metrics = evaluate(batch, config)
    assert loss.isfinite()
    assert slope.isfinite().all()
    assert all(math.isfinite(value) for value in metrics.values())


def test_what_impossible_tokens_count() -> None:
    """Ratio 1 where both policies give no probability, 0 where only the new one does; neither has a gradient."""
    policy = torch.tensor([[-math.inf, -math.inf, -1.0]])
    old = torch.tensor([[-math.inf, -1.0, -1.0]])
    loss, slope, _ = evaluate({"policy": policy, "old": old, "advantages": torch.ones(1)}, GrpoConfig(), 1.0)
    assert loss.item() == pytest.approx(-2.0)
    assert slope.tolist() == [[0.0, 0.0, -1.0]]


def test_a_sampler_that_reports_no_number_masks_only_its_completion() -> None:
    old = torch.full((2, 2), -1.0)
    sampler = torch.tensor([[-1.0, math.nan], [-1.0, -1.0]])
    batch = {"policy": old, "old": old, "sampler": sampler, "advantages": torch.ones(2)}
    loss, slope, metrics = evaluate(batch, GrpoConfig(), 4.0)
    assert loss.item() == pytest.approx(-0.5)
    assert slope.tolist() == [[0.0, 0.0], [-0.25, -0.25]]
    assert metrics["masked_sequences"] == 1.0


def test_the_pull_to_the_reference_far_from_it() -> None:
    """ref − π = −30 and +30: clamped to ±20."""
    policy = torch.tensor([[-1.0, -31.0]])
    ref = torch.tensor([[-31.0, -1.0]])
    batch = {"policy": policy, "old": policy, "ref": ref, "advantages": torch.zeros(1)}
    loss, slope, metrics = evaluate(batch, GrpoConfig(kl_coefficient=0.1), 1.0)
    assert slope[0].tolist() == pytest.approx([2.0, -2.0])
    assert metrics["kl"] == pytest.approx(19 + math.exp(20) - 21)
    assert loss.isfinite()


@pytest.mark.parametrize("sampler", [None, torch.full((1, 2), -1.0)], ids=["alone", "behind the sampler's mask"])
def test_a_nan_of_the_policy_makes_the_loss_nan(sampler: torch.Tensor | None) -> None:
    """A broken model must show, so that the step is not taken."""
    policy = torch.tensor([[math.nan, -1.0]])
    batch = {"policy": policy, "old": policy, "sampler": sampler, "advantages": torch.ones(1)}
    loss, _, _ = evaluate(batch, GrpoConfig(), 1.0)
    assert loss.isnan()
