"""A trainer's weights and gradients, and whether two sets of weights are the same in every bit."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from models.optim.master_weights import MasterWeights, join_bits
from models.trainer import Trainer


def weights_of(trainer: Trainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(left[name].equal(right[name]) for name in left)


def masters_of(weights: MasterWeights) -> dict[str, Tensor]:
    """The fp32 weights by name, put together: copies."""
    return {
        name: join_bits(p.detach(), weights.remainders[name]) if name in weights.remainders else p.detach().clone()
        for name, p in weights.trained.items()
    }


def gradients_of_steps(trainer: Trainer, work: Callable[[], Any]) -> list[dict[str, Tensor]]:
    """The gradients with which `work` comes to each of its optimizer steps."""
    found: list[dict[str, Tensor]] = []
    step = trainer.weights.step

    def record() -> float:
        found.append({name: own.clone() for name, own in trainer.weights.gradients.items()})
        return step()

    trainer.weights.step = record  # pyright: ignore[reportAttributeAccessIssue]
    try:
        work()
    finally:
        trainer.weights.step = step
    return found
