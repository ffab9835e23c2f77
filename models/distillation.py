"""Distillation: supervised lessons on worked answers."""

import random
from collections.abc import Iterator, Sequence

from conf.lessons import DistillConfig
from models.examples import Example
from models.trainer import Trainer


def distill(
    trainer: Trainer, examples: Sequence[Example], config: DistillConfig, seed: int
) -> Iterator[dict[str, float]]:
    """Takes `config.steps` steps over the shuffled examples, or as many as `max_epochs` of them have; yields each
    step's metrics.

    A few examples are learnt by heart, not learnt from: up to four times the same text teaches about as much as new
    one, and more teaches less and less (Muennighoff et al. 2023, arXiv:2305.16264). Raises ValueError where there are
    steps but no examples.
    """
    if config.steps and not examples:
        raise ValueError("there is no example to learn from: leave the lesson out, or set distill.steps to 0")
    order = _shuffled(examples, seed)
    size = min(config.batch_size, len(examples))
    steps = min(config.steps, config.max_epochs * len(examples) // size) if size else 0
    for step in range(steps):
        batch = [next(order) for _ in range(size)]
        yield {"step": step + 1.0} | trainer.imitate(batch)


def _shuffled(examples: Sequence[Example], seed: int) -> Iterator[Example]:
    chance = random.Random(seed)
    while True:
        yield from chance.sample(list(examples), len(examples))
