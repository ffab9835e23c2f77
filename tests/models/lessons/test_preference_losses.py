"""KTO against TRL's own code, values and gradients; DPO's are in `test_sft_preference.py`."""

import warnings
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.lessons.sft_preference import kto_kl, kto_loss

NATS = st.floats(-60.0, 0.0, width=32)
ANSWERS = st.lists(st.tuples(NATS, NATS, NATS, NATS), min_size=1, max_size=6)
ACCELERATOR = SimpleNamespace(gather_for_metrics=lambda x: x, gather=lambda x: x, device="cpu", num_processes=1)


@given(ANSWERS, st.integers(0, 63), st.floats(0.01, 1.0), st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)))
@settings(max_examples=50)
def test_kto_is_trls(rows: list[tuple[float, ...]], sides: int, beta: float, weights: tuple[float, float]) -> None:
    policy, reference, mismatched, anchor = torch.tensor(rows, dtype=torch.float64).T.clone()
    policy.requires_grad_()
    labels = torch.tensor([bool(sides >> place & 1) for place in range(len(policy))])
    ratings = torch.where(labels, 1.0, -1.0)
    loss, metrics = kto_loss(policy, reference, ratings, kto_kl(mismatched, anchor), beta=beta, weights=weights)
    answers = {"label": labels, "ref_logps": reference, "ref_KL_logps": anchor}
    expected, logged = trl_kto(policy, mismatched, answers, beta, weights)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one, policy)[0] for one in (loss, expected)))
    assert metrics["kl"] == pytest.approx(logged["kl"])
    for name, theirs in (("desirable", "rewards/chosen"), ("undesirable", "rewards/rejected")):
        assert metrics.get(name) == pytest.approx(logged.get(theirs))


def trl_kto(
    policy: Tensor, mismatched: Tensor, answers: dict[str, Tensor], beta: float, weights: tuple[float, float]
) -> tuple[Tensor, dict[str, float]]:
    """`_compute_loss` of a KTOTrainer whose answers are of one token, and the metrics that it logged.

    `mismatched`: log-probabilities of each prompt with another's answer.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from trl.trainer.kto_trainer import KTOTrainer  # takes seconds

    trainer: Any = object.__new__(KTOTrainer)
    logged: dict[str, list[float]] = defaultdict(list)
    trainer.beta, trainer.accelerator, trainer._metrics = beta, ACCELERATOR, {"eval": logged}
    trainer.model = SimpleNamespace(training=False)
    trainer.precompute_ref_logps, trainer.aux_loss_enabled, trainer._total_train_tokens = True, False, 0
    trainer.loss_type, trainer.calculate_KL = "kto", True
    trainer.desirable_weight, trainer.undesirable_weight = weights
    own = {  # a prompt and an answer of one token each
        "input_ids": torch.zeros(len(policy), 2, dtype=torch.long),
        "attention_mask": torch.ones(len(policy), 2, dtype=torch.long),
        "completion_mask": torch.tensor([[0, 1]] * len(policy)),
    }
    inputs = own | {f"KL_{name}": 1 + value for name, value in own.items()} | answers

    def model(*, input_ids: Tensor, **_: Any) -> SimpleNamespace:
        found = mismatched if input_ids.any() else policy  # only KL_input_ids are 1
        nothing = torch.zeros(len(found), 1)
        return SimpleNamespace(
            log_probs=found[:, None], entropy=nothing, mean_logits=nothing, is_top1=nothing.bool(), loss=None
        )

    loss = trainer._compute_loss(model, inputs, return_outputs=False)
    return loss, {name: values[-1] for name, values in logged.items()}
