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
    """Takes `config.steps` steps over the shuffled examples, or as many as `max_epochs` of them have; yields each
    step's metrics. No example comes twice in a step, or again before all others have come.

    A few examples are learnt by heart, not learnt from: up to four times the same text teaches about as much as new
    one, and more teaches less and less (Muennighoff et al. 2023, arXiv:2305.16264). Raises ValueError where there are
    steps but no examples.
    """
    if config.steps and not examples:
        raise ValueError("there is no example to learn from: leave the lesson out, or set distill.steps to 0")
    size = min(config.batch_size, len(examples))
    order = islice(_shuffled(examples, seed), min(config.steps * size, config.max_epochs * len(examples)))
    step = 0
    while batch := list(islice(order, size)):
        step += 1
        yield {"step": float(step)} | trainer.imitate(batch)


def _shuffled(examples: Sequence[Example], seed: int) -> Iterator[Example]:
    chance = random.Random(seed)
    while True:
        yield from chance.sample(list(examples), len(examples))
