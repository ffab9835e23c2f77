"""Steps that the trainer does not take: too few useful groups, nothing finite, or an error."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from conf.schema import LoraConfig
from models.rollout import Rollout
from models.trainer import NonFiniteError, Trainer
from tests.models.support.tiny import ADVANTAGES, trainer_config
from tests.models.support.weights import same, weights_of


@pytest.mark.parametrize("coefficient", [0.0, 0.1])
def test_too_few_useful_groups(folder: Path, rollouts: list[Rollout], coefficient: float) -> None:
    """With a KL term, groups without signal are trained on, but do not count."""
    trainer = Trainer.load(folder, trainer_config(min_useful_groups=2, kl_coefficient=coefficient))
    before = weights_of(trainer)
    one_group = [1.0, -0.5, -0.5, *[0.0] * 6]
    for advantages, useful in ((one_group, 1), ([0.0] * 9, 0), ([math.nan] * 9, 0)):
        metrics = trainer.update(rollouts, advantages)
        assert (metrics["skipped"], metrics["useful_groups"], metrics["groups"]) == (1.0, useful, 3.0)
    assert trainer.update([], [])["skipped"] == 1.0
    assert same(weights_of(trainer), before)
    assert trainer.step == 0
    assert trainer.update(rollouts, [1.0, -0.5, -0.5, 0.5, -0.5, *[0.0] * 4])["skipped"] == 0.0


def test_steps_that_are_not_finite(folder: Path, rollouts: list[Rollout], caplog: pytest.LogCaptureFixture) -> None:
    """They are not taken, but counted and logged; a good one resets the count; the third in a row fails."""
    trainer = Trainer.load(folder, trainer_config())
    bad = [math.inf, *ADVANTAGES[1:]]
    before = weights_of(trainer)
    for _ in range(2):
        assert trainer.update(rollouts, bad)["non_finite_steps"] == 1.0
    assert same(weights_of(trainer), before)
    assert trainer.step == 0

    assert trainer.update(rollouts, ADVANTAGES)["non_finite_steps"] == 0.0
    untroubled = Trainer.load(folder, trainer_config())
    untroubled.update(rollouts, ADVANTAGES)
    assert same(weights_of(trainer), weights_of(untroubled))

    for _ in range(2):
        trainer.update(rollouts, bad)
    with pytest.raises(NonFiniteError, match="after step 1"):
        trainer.update(rollouts, bad)
    assert same(weights_of(trainer), weights_of(untroubled))
    logged = [record.getMessage() for record in caplog.records if record.name == "nightschool"]
    numbers = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]  # the step, and the how manieth in a row
    assert logged == [f"step {s} was not taken: the loss was not finite; {row} in a row" for s, row in numbers]


def test_gradients_that_are_not_finite_are_not_taken(folder: Path, rollouts: list[Rollout]) -> None:
    trainer = Trainer.load(folder, trainer_config())
    before = weights_of(trainer)
    next(iter(trainer.weights.trained.values())).register_hook(lambda gradient: gradient * math.nan)
    assert trainer.update(rollouts, ADVANTAGES)["non_finite_steps"] == 1.0
    assert same(weights_of(trainer), before)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_an_interrupted_step_leaves_nothing_behind(
    folder: Path, rollouts: list[Rollout], monkeypatch: pytest.MonkeyPatch, dropout: float
) -> None:
    """Out of memory in the second microbatch: the next try has neither its gradients nor its dropout."""
    config = trainer_config(microbatch_tokens=12, lora=LoraConfig(dropout=dropout) if dropout else None)
    trainer = Trainer.load(folder, config)
    calls = []

    def broken(*arguments: Any) -> Any:
        calls.extend([arguments] if torch.is_grad_enabled() else [])
        if len(calls) == 2:
            raise MemoryError
        return whole(*arguments)

    whole = trainer.token_logprobs
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "token_logprobs", broken)
        with pytest.raises(MemoryError):
            trainer.update(rollouts, ADVANTAGES)
    trainer.update(rollouts, ADVANTAGES)
    untroubled = Trainer.load(folder, config)
    untroubled.update(rollouts, ADVANTAGES)
    assert same(weights_of(trainer), weights_of(untroubled))
