"""DPO and KTO: by hand and against TRL's own code, values and gradients."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.lessons.preference_losses import dpo_loss, kto_kl, kto_loss
from tests.models.support.trl_preferences import trl_dpo, trl_kto

NATS = st.floats(-60.0, 0.0, width=32)


# --- by hand


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
