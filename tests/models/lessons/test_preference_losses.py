"""KTO against TRL's own code, values and gradients; DPO's are in `test_sft_preference.py`."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.lessons.preference_losses import kto_kl, kto_loss
from tests.models.support.trl_preferences import trl_kto

NATS = st.floats(-60.0, 0.0, width=32)
ANSWERS = st.lists(st.tuples(NATS, NATS, NATS, NATS), min_size=1, max_size=6)


@given(ANSWERS, st.integers(0, 63), st.floats(0.01, 1.0), st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)))
@settings(max_examples=50)
def test_kto_is_trls(rows: list[tuple[float, ...]], sides: int, beta: float, weights: tuple[float, float]) -> None:
    policy, reference, mismatched, anchor = torch.tensor(rows, dtype=torch.float64).T.clone()
    policy.requires_grad_()
    labels = torch.tensor([bool(sides >> place & 1) for place in range(len(policy))])
    ratings = torch.where(labels, 1.0, -1.0)
    loss, metrics = kto_loss(policy, reference, ratings, kto_kl(mismatched, anchor), beta=beta, weights=weights)
    expected, logged = trl_kto(policy, reference, labels, mismatched, anchor, beta=beta, weights=weights)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one, policy)[0] for one in (loss, expected)))
    assert metrics["kl"] == pytest.approx(logged["kl"])
    for name, theirs in (("desirable", "rewards/chosen"), ("undesirable", "rewards/rejected")):
        assert metrics.get(name) == pytest.approx(logged.get(theirs))
