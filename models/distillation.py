"""Distillation: supervised lessons on worked answers."""

import random
from collections.abc import Iterator, Sequence

from conf.lessons import DistillConfig
from models.examples import Example
from models.trainer import Trainer


def distill(
    trainer: Trainer, examples: Sequence[Example], config: DistillConfig, seed: int
) -> Iterator[dict[str, float]]:
    """Takes `config.steps` steps over the shuffled examples, again and again if need be; yields each step's metrics.

    Raises ValueError where there are steps but no examples.
    """
    if config.steps and not examples:
        raise ValueError("there is no example to learn from: leave the lesson out, or set distill.steps to 0")
    order = _shuffled(examples, seed)
    for step in range(config.steps):
        batch = [next(order) for _ in range(config.batch_size)]
        yield {"step": step + 1.0} | trainer.imitate(batch)


def _shuffled(examples: Sequence[Example], seed: int) -> Iterator[Example]:
    chance = random.Random(seed)
    while True:
        yield from chance.sample(list(examples), len(examples))
