"""Fitting a reward model: it learns a taste, the same every time, however its steps are cut."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from conf.schema import LoraConfig
from models.lessons.preference_data import Pick
from models.lessons.ranking import rank
from models.lessons.reward_fit import fit
from models.reward_model import RewardModel
from tests.models.support.tiny import trainer_config
from tests.models.support.tiny_picks import QUICK, tiny_picks

TRAINER = trainer_config()


def accuracy(model: RewardModel, picks: list[Pick]) -> float:
    return rank(model.judge([(pick.prompt, pick.answers) for pick in picks]), picks).accuracy.value


@pytest.mark.slow
def test_with_adapters_too_and_what_is_saved_is_what_was_learned(folder: Path, tmp_path: Path) -> None:
    adapters = trainer_config(lora=LoraConfig(rank=8, alpha=16, dropout=0.5))
    config = QUICK.model_copy(update={"learning_rate": 1e-2})
    model, _ = fit(folder, tiny_picks(120, seed=1), config, adapters, seed=1)
    judges = tiny_picks(100, seed=2)
    model.save(tmp_path / "kept")
    merged = RewardModel.load(tmp_path / "kept", TRAINER)
    assert accuracy(model, judges) > 0.7
    assert accuracy(merged, judges) == pytest.approx(accuracy(model, judges), abs=0.05)


@pytest.mark.parametrize("adapters", [None, LoraConfig(rank=4, alpha=8)])
def test_the_same_fit_comes_to_the_same_bits(folder: Path, adapters: LoraConfig | None) -> None:
    picks, trainer = tiny_picks(20, seed=1), trainer_config(lora=adapters)
    torch.manual_seed(1)
    first = fit(folder, picks, QUICK, trainer, seed=3)
    torch.manual_seed(2)  # what others draw does not matter
    second = fit(folder, picks, QUICK, trainer, seed=3)
    asked = [(pick.prompt, pick.answers) for pick in picks]
    assert first[1] == second[1]
    assert first[0].judge(asked) == second[0].judge(asked)
    assert fit(folder, picks, QUICK, trainer, seed=4)[1] != first[1]


def test_a_step_does_not_depend_on_how_it_is_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.reward_model.compute_dtype", lambda device: torch.float32)
    picks = [replace(pick, weight=1 + place % 3) for place, pick in enumerate(tiny_picks(24, seed=1))]
    picks[3] = replace(picks[3], answers=picks[3].answers[:2], chosen=0)
    curves = [
        fit(folder, picks, QUICK, trainer_config(microbatch_tokens=tokens), seed=1)[1] for tokens in (10_000, 90, 1)
    ]
    for other in curves[1:]:
        for found, wanted in zip(other, curves[0], strict=True):
            assert found == pytest.approx(wanted, rel=2e-3, abs=1e-4)


def test_embeddings_are_frozen_and_layers_move(folder: Path) -> None:
    before = dict(RewardModel(folder, TRAINER).model.named_parameters())
    after, _ = fit(folder, tiny_picks(16, seed=1), QUICK, TRAINER, seed=1)
    moved = {name for name, weights in after.model.named_parameters() if not weights.equal(before[name])}
    assert moved == before.keys() - {"model.embed_tokens.weight"}


def test_steps_that_are_not_finite_are_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = RewardModel.rewards
    monkeypatch.setattr(RewardModel, "rewards", lambda self, packed: rewards(self, packed) * float("nan"))
    model, curve = fit(folder, tiny_picks(16, seed=1), QUICK, TRAINER, seed=1)
    assert all(step["skipped"] == 1 for step in curve)
    assert model.head.weight.abs().sum() == 0
