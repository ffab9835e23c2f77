"""Master weights: AdamW against torch, what bf16 would have lost, and continuing bit for bit."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

from conf.schema import OptimizerConfig
from models.optim import master_weights
from models.optim.master_weights import PART, MasterWeights, draw_thresholds, join_bits, split_bits
from models.optim.trainer_state import StateError
from tests.models.support.weights import masters_of

CONFIG = OptimizerConfig(learning_rate=0.1, warmup_steps=0)
GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))


def network(dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).to(dtype)


def study(model: torch.nn.Module, weights: MasterWeights, seeds: range) -> list[float]:
    """One step for each seed; returns the gradients' norms."""
    norms = []
    for seed in seeds:
        parameter = next(model.parameters())
        batch = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed)).to(parameter)
        model(batch).square().mean().backward()
        norms.append(weights.step())
    return norms


def bits(model: torch.nn.Module, weights: MasterWeights) -> list[Tensor]:
    tensors = [*model.state_dict().values(), *masters_of(weights).values(), *weights.tensors().values()]
    return [tensor.clone() for tensor in tensors]


def same_bits(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(a.equal(b) for a, b in zip(left, right, strict=True))


def one_weight(value: float, dtype: torch.dtype = torch.float32) -> torch.nn.Linear:
    model = torch.nn.Linear(1, 1, bias=False, dtype=dtype)
    torch.nn.init.constant_(model.weight, value)
    return model


def push(model: torch.nn.Linear, slope: float) -> None:
    (model.weight * slope).sum().backward()


# --- steps


def test_as_torch_with_clipping_and_a_frozen_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_weights, "MAX_GRAD_NORM", 0.05)
    model, plain = network(), network()
    for each in (model, plain):
        next(each.parameters()).requires_grad_(False)
    weights = MasterWeights(model, CONFIG)
    assert "0.weight" not in weights.trained
    trained = [p for p in plain.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.1, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    for seed in range(5):
        optimizer.zero_grad()
        plain(torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))).square().mean().backward()
        expected = torch.nn.utils.clip_grad_norm_(trained, 0.05)
        optimizer.step()
        assert study(model, weights, range(seed, seed + 1)) == [pytest.approx(expected.item(), rel=1e-5)]
    for got, want in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


def test_gradients_of_microbatches_add_up_in_fp32_and_are_freed() -> None:
    """256 + 1 is 256 in bf16."""
    model = one_weight(0.0, torch.bfloat16)
    weights = MasterWeights(model, CONFIG)
    for slope in (256.0, 1.0, 1.0, 1.0):
        push(model, slope)
        assert model.weight.grad is None
    assert weights.step() == 259.0
    push(model, 1.0)
    assert weights.step() == 1.0  # nothing is left of the step before
    push(model, 5.0)
    weights.discard()
    assert weights.step() == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_step_on_gradients_that_are_not_finite(bad: float) -> None:
    model, twin = network(torch.bfloat16), network(torch.bfloat16)
    weights, others = MasterWeights(model, CONFIG), MasterWeights(twin, CONFIG)
    study(model, weights, range(2))
    study(twin, others, range(2))
    (model(torch.ones(5, 4).bfloat16()).sum() * bad).backward()
    assert not math.isfinite(weights.step())
    assert weights.step_count == 2
    study(model, weights, range(2, 4))
    study(twin, others, range(2, 4))
    assert same_bits(bits(model, weights), bits(twin, others))


# --- bf16


@given(arrays(np.uint32, 50), st.integers(0, 2**32))
def test_an_fp32_number_is_a_bf16_and_its_lower_bits(bits: np.ndarray, seed: int) -> None:
    """Whatever its bits and thresholds: exactly, and the bf16 is one of the two nearest."""
    master = torch.from_numpy(bits.view(np.float32))
    rounded, lower = torch.empty(50, dtype=torch.bfloat16), torch.empty(50, dtype=torch.int16)
    thresholds = draw_thresholds(master, torch.Generator().manual_seed(seed))
    split_bits(master, rounded, lower, thresholds)
    assert join_bits(rounded, lower, thresholds).view(torch.int32).equal(master.view(torch.int32))
    upper = (master.view(torch.int32) >> 16).to(torch.int16)
    assert set((rounded.view(torch.int16) - upper).tolist()) <= {0, 1}
    exact = torch.tensor([1.0, -1.5]).repeat(25)
    split_bits(exact, rounded, lower, thresholds)
    assert rounded.float().equal(exact)


def test_in_bf16_the_masters_take_the_steps_of_fp32_weights() -> None:
    """To the bit, in several parts, on the same gradients; the model has them rounded up or down."""
    size = PART["cpu"] - 1
    shape = (3, size)
    model, plain = torch.nn.Linear(size, 3, dtype=torch.bfloat16), torch.nn.Linear(size, 3)
    plain.load_state_dict(model.state_dict())
    weights, exact = MasterWeights(model, CONFIG), MasterWeights(plain, CONFIG)
    for seed in range(3):
        gradient = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()
        for each in (model, plain):
            (each.weight * gradient.to(each.weight.dtype)).sum().backward()
        assert weights.step() == exact.step()
    assert masters_of(weights)["weight"].equal(plain.weight.detach())
    assert not model.weight.float().equal(plain.weight)
    assert (model.weight.float() - plain.weight).abs().max() <= plain.weight.abs().max() / 128


def test_other_precisions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"weight has torch\.float16"):
        MasterWeights(one_weight(1.0, torch.float16), CONFIG)


def test_the_weights_change_in_expectation_as_their_masters() -> None:
    """Rounded to nearest, nothing would be left of small steps. A weight that has moved stays: it does not flicker."""
    model = torch.nn.Linear(1, 100_000, bias=False, dtype=torch.bfloat16)
    start = torch.tensor([1.0, -1.5]).repeat_interleave(50_000)[:, None]
    model.weight.data.copy_(start)
    place, before = 2**-7, torch.zeros_like(start)
    weights = MasterWeights(model, OptimizerConfig(learning_rate=place / 20, warmup_steps=0))
    for step in range(1, 6):  # each by a twentieth of the last place, away from zero
        (model.weight * -start.sign().bfloat16()).sum().backward()
        weights.step()
        moved = (model.weight.data.float() - start) * start.sign() / place
        for part in moved.split(50_000):
            assert set(part[:, 0].tolist()) == {0.0, 1.0}
            assert float(part.mean()) == pytest.approx(step / 20, abs=0.011)  # five standard errors
        assert (moved >= before).all()
        before = moved


def test_each_seed_has_its_own_thresholds() -> None:
    """So the weights that a night's small steps left where they were are not those of the next night."""
    moved = []
    for seed in (1, 1, 2):
        model = torch.nn.Linear(1, 10_000, bias=False, dtype=torch.bfloat16)
        torch.nn.init.ones_(model.weight)
        weights = MasterWeights(model, OptimizerConfig(learning_rate=2**-7 / 8, warmup_steps=0), seed)
        (-model.weight).sum().backward()
        weights.step()
        moved.append(model.weight.data[:, 0] > 1)
    first, again, other = moved
    assert first.equal(again)
    assert float(other[first].float().mean()) == pytest.approx(1 / 8, abs=0.05)


# --- continuing


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", ["cpu", GPU])
def test_restored_weights_continue_bit_for_bit(steps: int, dtype: torch.dtype, device: str) -> None:
    model, other = network(dtype).to(device), network(dtype, seed=5).to(device)
    weights = MasterWeights(model, CONFIG.model_copy(update={"warmup_steps": 5}))
    study(model, weights, range(steps))
    saved = {name: tensor.cpu().clone() for name, tensor in weights.tensors().items()}
    again = MasterWeights(other, weights.config, seed=1)
    study(other, again, range(7, 9))  # whatever it did before is forgotten
    again.restore(saved, steps)
    assert same_bits(bits(model, weights), bits(other, again))
    for place in ("cpu", device):
        weights.move(place)
    assert study(model, weights, range(3, 6)) == study(other, again, range(3, 6))
    assert same_bits(bits(model, weights), bits(other, again))
    kinds = {"weight", "exp_avg", "exp_avg_sq"} | ({"lower"} if dtype == torch.bfloat16 else set())
    assert saved.pop("seed") == weights.seed
    assert {name.split("/")[0] for name in saved} == kinds
    assert sum(tensor.nbytes for tensor in saved.values()) == 3 * 4 * sum(p.numel() for p in model.parameters())


def test_only_the_weights_stay_while_the_engine_has_the_gpu() -> None:
    model = network(torch.bfloat16)
    weights = MasterWeights(model, CONFIG)
    weights.move("meta")  # stands for another device, on a machine that has only one
    left = {
        *weights.gradients.values(),
        *(x for name, x in weights.tensors().items() if not name.startswith(("weight/", "seed"))),
    }
    assert {tensor.device.type for tensor in left} == {"meta"}
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}


def test_the_state_of_other_weights_is_refused() -> None:
    """Of other names, shapes or precisions; the weights stay what they were."""
    model = network()
    weights = MasterWeights(model, CONFIG)
    study(model, weights, range(1))
    before, saved = bits(model, weights), dict(weights.tensors())
    named = {name.replace("2.", "4."): tensor for name, tensor in saved.items()}
    shaped = saved | {"weight/0.bias": torch.zeros(5)}
    rounded = saved | {"weight/0.bias": saved["weight/0.bias"].bfloat16()}
    for other in (named, shaped, rounded):
        with pytest.raises(StateError, match="belongs to other weights"):
            weights.restore(other, 1)
    assert same_bits(bits(model, weights), before)
