"""Distillation: the order of the lessons, and that they teach."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from conf.sections.lessons import DistillConfig
from models.lessons.sft_preference import distill
from models.trainer import Trainer
from tests.models.support.tiny import random_tokens, trainer_config, write_tiny

EXAMPLES = [(random_tokens(3, number), random_tokens(2 + number % 3, 50 + number)) for number in range(5)]


class Listener:
    """Stands in for a trainer and notes what it is taught."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def imitate(self, batch: list[Any]) -> dict[str, float]:
        self.batches.append(batch)
        return {"loss": float(len(self.batches))}


def batches(seed: int, steps: int = 4, size: int = 3) -> list[list[Any]]:
    listener: Any = Listener()
    curve = list(distill(listener, EXAMPLES, DistillConfig(steps=steps, batch_size=size, max_epochs=6), seed))
    assert curve == [{"step": float(step), "loss": float(step)} for step in range(1, steps + 1)]
    return listener.batches


def test_steps_and_batches() -> None:
    assert [len(batch) for batch in batches(1)] == [3, 3, 3, 3]
    assert batches(1, steps=0) == []


def test_every_example_once_before_any_comes_again() -> None:
    order = [tuple(map(tuple, example)) for batch in batches(1, steps=10) for example in batch]
    for start in range(0, 30, 5):
        assert len(set(order[start : start + 5])) == 5
    assert set(Counter(order).values()) == {6}
    assert order[:5] != order[5:10]


@pytest.mark.parametrize(
    ("count", "size", "epochs", "sizes"),
    [
        (3, 16, 4, [12]),  # fewer than a step has
        (5, 3, 1, [2, 3]),
        (5, 2, 2, [2, 2, 2, 2, 2]),
        (5, 5, 9, [5] * 6),  # as many steps as are allowed
        (3, 5, 9, [4, 5, 4, 5, 4, 5]),
    ],
)
def test_few_examples_are_not_learnt_by_heart(count: int, size: int, epochs: int, sizes: list[int]) -> None:
    listener: Any = Listener()
    list(distill(listener, EXAMPLES[:count], DistillConfig(steps=6, batch_size=size, max_epochs=epochs), 1))
    assert [len(batch) for batch in listener.batches] == sizes
    often = Counter(tuple(map(tuple, example)) for batch in listener.batches for example in batch)
    assert max(often.values()) <= epochs


def test_the_seed_makes_the_order() -> None:
    assert batches(1) == batches(1)
    assert batches(1) != batches(2)


def test_lessons_come_one_at_a_time() -> None:
    """Each step is taken when it is asked for, so that its figures can be shown meanwhile."""
    listener: Any = Listener()
    curve = distill(listener, EXAMPLES, DistillConfig(steps=3, batch_size=1), 1)
    next(curve)
    assert len(listener.batches) == 1


def test_nothing_to_learn_from_is_an_error_and_no_endless_search() -> None:
    listener: Any = Listener()
    with pytest.raises(ValueError, match="no example to learn from"):
        list(distill(listener, [], DistillConfig(steps=1), 1))
    assert list(distill(listener, [], DistillConfig(steps=0), 1)) == []


def test_a_student_learns_by_heart(tmp_path: Path) -> None:
    trainer = Trainer.load(write_tiny(tmp_path), trainer_config(learning_rate=3e-3))
    curve = list(distill(trainer, EXAMPLES, DistillConfig(steps=30, batch_size=5, max_epochs=30), 1))
    assert curve[0]["loss"] > 4.0
    assert curve[-1]["loss"] < 0.5
    assert trainer.step == 30
    model: Any = trainer.model
    with torch.no_grad():
        model.set_attn_implementation("sdpa")
        for prompt, answer in EXAMPLES:
            logits = model(input_ids=torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
            assert logits.argmax(dim=-1).tolist() == answer
