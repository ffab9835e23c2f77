"""Fitting a reward model: it is reproducible, reaches the loss's optimum, and leaves the champion's layers alone."""

from pathlib import Path

import pytest
import torch

from models.lessons.preference_data import Pick
from models.lessons.ranking import rank
from models.reward_model import PENALTY, RewardModel, choice_loss, fit
from tests.models.support.tiny import trainer_config
from tests.models.support.tiny_picks import tiny_picks

TRAINER = trainer_config()


def test_a_fit_is_reproducible_and_leaves_the_layers_alone(folder: Path) -> None:
    before = dict(RewardModel(folder, TRAINER).model.named_parameters())
    first, second = (fit(folder, tiny_picks(20, seed=1), TRAINER) for _ in range(2))
    assert first.head.equal(second.head)
    kept = dict(first.model.named_parameters())
    assert kept.keys() < before.keys()
    assert all(weights.equal(before[name]) for name, weights in kept.items())


@pytest.mark.parametrize("tokens", [90, 1])
def test_a_fit_does_not_depend_on_how_it_is_cut(folder: Path, monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    monkeypatch.setattr("models.reward_model.compute_dtype", lambda device: torch.float32)
    picks = tiny_picks(24, seed=1)
    whole, cut = (fit(folder, picks, trainer_config(microbatch_tokens=most)) for most in (10_000, tokens))
    assert cut.head.tolist() == pytest.approx(whole.head.tolist(), rel=0.02, abs=0.02)


def test_it_ends_at_the_optimum_of_the_weighted_penalised_loss(folder: Path) -> None:
    picks = [Pick(p.prompt, p.answers[: 2 + n % 4], 0, 0.5 + n % 3) for n, p in enumerate(tiny_picks(30, seed=1))]
    model = fit(folder, picks, TRAINER)
    states = model.read([(pick.prompt, pick.answers) for pick in picks]).double()
    head = (model.head.double() * states.std(dim=0)).requires_grad_()
    standard = iter((states - states.mean(dim=0)) / states.std(dim=0))
    losses = [
        pick.weight * choice_loss(torch.stack([next(standard) @ head for _ in pick.answers])[None], torch.tensor([0]))
        for pick in picks
    ]
    total = torch.stack(losses).sum() / sum(pick.weight for pick in picks) + PENALTY * head.square().sum()
    (slope,) = torch.autograd.grad(total, head)
    assert slope.abs().max() < 1e-4


def test_picks_that_are_all_too_old_teach_nothing(folder: Path) -> None:
    picks = [Pick(pick.prompt, pick.answers, pick.chosen, 0.0) for pick in tiny_picks(10, seed=1)]
    assert not fit(folder, picks, TRAINER).head.any()


def test_a_fit_that_is_not_finite_may_not_serve(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = RewardModel.read
    monkeypatch.setattr(RewardModel, "read", lambda self, groups: read(self, groups) * float("nan"))
    picks = tiny_picks(60, seed=1)
    rewards = fit(folder, picks, TRAINER).judge([(pick.prompt, pick.answers) for pick in picks])
    assert rank(rewards, picks).refusal is not None
