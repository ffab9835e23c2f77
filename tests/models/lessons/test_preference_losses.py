"""DPO and KTO: by hand and against TRL's own code, values and gradients."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.lessons.preference_losses import dpo_loss, kto_kl, kto_loss
from tests.models.support.trl_preferences import trl_dpo, trl_kto

NATS = st.floats(-60.0, 0.0, width=32)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def tensor(*values: float) -> Tensor:
    return torch.tensor(values)


# --- by hand


def test_dpo_by_hand() -> None:
    loss, metrics = dpo_loss(tensor(-2.0, -5.0), tensor(-4.0, -3.0), tensor(-3.0, -5.0), tensor(-3.0, -4.0), 0.5)
    margins = [0.5 * (1.0 - -1.0), 0.5 * (0.0 - 1.0)]  # log-ratios of the picked less those of the other
    assert float(loss) == pytest.approx(-(math.log(sigmoid(margins[0])) + math.log(sigmoid(margins[1]))) / 2)
    assert metrics == {"margin": pytest.approx(0.25), "accuracy": 0.5}


def test_kto_by_hand() -> None:
    loss, metrics = kto_loss(
        tensor(-2.0, -3.0, -6.0),
        tensor(-4.0, -3.0, -4.0),
        torch.tensor([True, False, False]),
        torch.tensor(1.0),
        beta=0.5,
        desirable_weight=2.0,
        undesirable_weight=3.0,
    )
    terms = [2 * (1 - sigmoid(0.5 * (2 - 1))), 3 * (1 - sigmoid(0.5 * (1 - 0))), 3 * (1 - sigmoid(0.5 * (1 - -2)))]
    assert float(loss) == pytest.approx(sum(terms) / 3)
    assert metrics == {"kl": 1.0, "desirable": pytest.approx(1.0), "undesirable": pytest.approx(-0.5)}


def test_ktos_reference_point_is_never_below_0() -> None:
    assert float(kto_kl(tensor(-2.0, -5.0), tensor(-4.0, -4.0))) == pytest.approx(0.5)
    assert float(kto_kl(tensor(-5.0), tensor(-4.0))) == 0.0
    assert float(kto_kl(torch.tensor([]), torch.tensor([]))) == 0.0


def test_ktos_reference_point_has_no_gradient() -> None:
    policy = tensor(-2.0, -3.0).requires_grad_()
    loss, _ = kto_loss(policy, tensor(-2.5, -2.0), torch.tensor([True, False]), policy.mean() + 4, beta=0.3)
    moved, _ = kto_loss(policy, tensor(-2.5, -2.0), torch.tensor([True, False]), torch.tensor(1.5), beta=0.3)
    gradients = [torch.autograd.grad(one, policy)[0] for one in (loss, moved)]
    torch.testing.assert_close(*gradients)


# --- against TRL


@st.composite
def answers(draw: st.DrawFn, columns: int) -> list[Tensor]:
    rows = draw(st.lists(st.tuples(*[NATS] * columns), min_size=1, max_size=6))
    return [torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True)]


@given(answers(4), st.floats(0.01, 1.0))
@settings(max_examples=50)
def test_dpo_is_trls(columns: list[Tensor], beta: float) -> None:
    picked, other = (column.requires_grad_() for column in columns[:2])
    loss, metrics = dpo_loss(picked, other, columns[2], columns[3], beta)
    expected, logged = trl_dpo(picked, other, columns[2], columns[3], beta)
    torch.testing.assert_close(loss, expected)
    ours, theirs = (torch.autograd.grad(one, (picked, other)) for one in (loss, expected))
    torch.testing.assert_close(ours, theirs)
    assert metrics["margin"] == pytest.approx(logged["rewards/margins"], abs=1e-6)
    assert metrics["accuracy"] == pytest.approx(logged["rewards/accuracies"])


@given(answers(4), st.integers(0, 63), st.floats(0.01, 1.0), st.floats(0.1, 4.0), st.floats(0.1, 4.0))
@settings(max_examples=50)
def test_kto_is_trls(columns: list[Tensor], sides: int, beta: float, desirable: float, undesirable: float) -> None:
    policy, reference, mismatched, anchor = columns
    policy.requires_grad_()
    labels = torch.tensor([bool(sides >> place & 1) for place in range(len(policy))])
    weights: dict[str, Any] = {"beta": beta, "desirable_weight": desirable, "undesirable_weight": undesirable}
    loss, metrics = kto_loss(policy, reference, labels, kto_kl(mismatched, anchor), **weights)
    expected, logged = trl_kto(policy, reference, labels, mismatched, anchor, **weights)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one, policy)[0] for one in (loss, expected)))
    assert metrics["kl"] == pytest.approx(logged["kl"])
    for name, theirs in (("desirable", "rewards/chosen"), ("undesirable", "rewards/rejected")):
        assert metrics.get(name) == pytest.approx(logged.get(theirs))
