"""TRL's own KTO on log-probabilities of ours: no model, no data set, only the trainer's loss method."""

import warnings
from collections import defaultdict
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

ACCELERATOR = SimpleNamespace(gather_for_metrics=lambda x: x, gather=lambda x: x, device="cpu", num_processes=1)


@cache
def kto_trainer() -> Any:
    """TRL's KTOTrainer; imported late, since that takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from trl.trainer.kto_trainer import KTOTrainer
    return KTOTrainer


def trl_kto(
    policy: Tensor,
    reference: Tensor,
    desirable: Tensor,
    mismatched: Tensor,
    reference_mismatched: Tensor,
    *,
    beta: float,
    weights: tuple[float, float],
) -> tuple[Tensor, dict[str, float]]:
    """`_compute_loss` of a KTOTrainer whose answers are of one token, and the metrics that it logged.

    `mismatched`: log-probabilities of each prompt with another's answer.
    """
    trainer: Any = object.__new__(kto_trainer())
    logged: dict[str, list[float]] = defaultdict(list)
    trainer.beta, trainer.accelerator, trainer._metrics = beta, ACCELERATOR, {"eval": logged}
    trainer.model = SimpleNamespace(training=False)
    trainer.precompute_ref_logps, trainer.aux_loss_enabled, trainer._total_train_tokens = True, False, 0
    trainer.loss_type, trainer.calculate_KL = "kto", True
    trainer.desirable_weight, trainer.undesirable_weight = weights
    own = _sequences(len(policy))
    inputs = own | {f"KL_{name}": 1 + value for name, value in own.items()}
    inputs |= {"label": desirable, "ref_logps": reference, "ref_KL_logps": reference_mismatched}
    loss = trainer._compute_loss(_model(policy, mismatched), inputs, return_outputs=False)
    return loss, {name: values[-1] for name, values in logged.items()}


def _sequences(count: int) -> dict[str, Tensor]:
    """Prompts and answers of one token each."""
    return {
        "input_ids": torch.zeros(count, 2, dtype=torch.long),
        "attention_mask": torch.ones(count, 2, dtype=torch.long),
        "completion_mask": torch.tensor([[0, 1]] * count),
    }


def _model(logprobs: Tensor, mismatched: Tensor) -> Any:
    """Gives these log-probabilities to each answer; `mismatched` where the tokens are 1."""

    def forward(*, input_ids: Tensor, **_: Any) -> SimpleNamespace:
        found = mismatched if input_ids.any() else logprobs
        nothing = torch.zeros(len(found), 1)
        return SimpleNamespace(
            log_probs=found[:, None], entropy=nothing, mean_logits=nothing, is_top1=nothing.bool(), loss=None
        )

    return forward
