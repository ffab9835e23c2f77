"""Distillation: supervised lessons on worked answers."""

import random
from collections.abc import Iterator, Sequence
from itertools import islice

from conf.lessons import DistillConfig
from models.examples import Example
from models.trainer import Trainer


def distill(
    trainer: Trainer, examples: Sequence[Example], config: DistillConfig, seed: int
) -> Iterator[dict[str, float]]:
    """Takes `config.steps` steps over the shuffled examples, or fewer of few; yields each step's metrics.

    No example comes more often than `max_epochs` times, and none again before all have come. The steps are equal but
    for one example. A few examples are learnt by heart, and a step moves the weights as far whatever it is made of: up
    to four times the same text teaches about as much as new one, and more teaches less and less (Muennighoff et al.
    2023, arXiv:2305.16264). Raises ValueError where there are steps but no examples.
    """
    if config.steps and not examples:
        raise ValueError("there is no example to learn from: leave the lesson out, or set distill.steps to 0")
    order = _shuffled(examples, seed)
    count = min(config.steps * config.batch_size, config.max_epochs * len(examples))
    steps = -(-count // config.batch_size)
    for step in range(steps):
        batch = list(islice(order, count * (step + 1) // steps - count * step // steps))
        yield {"step": step + 1.0} | trainer.imitate(batch)


def _shuffled(examples: Sequence[Example], seed: int) -> Iterator[Example]:
    chance = random.Random(seed)
    while True:
        yield from chance.sample(list(examples), len(examples))
