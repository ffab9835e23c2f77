"""A trainer's weights and gradients, and comparisons of them: bit for bit, or against the plain model."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from models.optim.master_weights import MasterWeights, draw_thresholds, join_bits
from models.trainer import Trainer

Named = dict[str, Tensor]


def weights_of(trainer: Trainer) -> Named:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def same(left: Named, right: Named) -> bool:
    """Whether two sets are equal bit for bit."""
    return left.keys() == right.keys() and all(left[name].equal(right[name]) for name in left)


def assert_close(left: Named, right: Named, tolerance: float = 1e-6, relative: float = 1e-4) -> None:
    assert left.keys() == right.keys()
    for name in left:
        torch.testing.assert_close(left[name], right[name], atol=tolerance, rtol=relative, msg=name)


def masters_of(weights: MasterWeights) -> Named:
    """The fp32 weights by name: copies."""
    generator, masters = torch.Generator().manual_seed(int(weights.seed)), {}
    for name, parameter in weights.trained.items():
        parts = [
            part.clone() if lower is None else join_bits(part, lower, draw_thresholds(part, generator))
            for part, lower, *_ in weights._parts(name)
        ]
        masters[name] = torch.cat(parts).view(parameter.shape)
    return masters


def plain_gradients(model: Any) -> Named:
    """The gradients of a model after `backward`."""
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def gradients_of_steps(trainer: Trainer, work: Callable[[], Any], weights: list[Named] | None = None) -> list[Named]:
    """The gradients with which `work` comes to each of its optimizer steps; `weights` gets those after each step."""
    gradients: list[Named] = []
    step = trainer.weights.step

    def record() -> float:
        gradients.append({name: tensor.clone() for name, tensor in trainer.weights.gradients.items()})
        norm = step()
        if weights is not None:
            weights.append(weights_of(trainer))
        return norm

    trainer.weights.step = record
    try:
        work()
    finally:
        trainer.weights.step = step
    return gradients


def gradients_of_round(
    trainer: Trainer, rollouts: Sequence[Any], advantages: Sequence[Any], weights: list[Named] | None = None
) -> tuple[list[Named], dict[str, float]]:
    """The gradients of each step of a round, and what it reports."""
    metrics: dict[str, float] = {}
    gradients = gradients_of_steps(trainer, lambda: metrics.update(trainer.update(rollouts, advantages)), weights)
    return gradients, metrics
