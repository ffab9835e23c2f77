"""The loss's settings, and rollouts that are out of the ordinary, through a whole round of the trainer."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from conf.schema import OptimizerConfig, TrainerConfig
from models.advantages import group_advantages
from models.rollout import Rollout
from models.trainer import Trainer
from tests.models.support.tiny import (
    ADVANTAGES,
    LENGTHS,
    plain_logprobs,
    plain_model,
    random_tokens,
    rollout,
    sampled_groups,
    trainer_config,
)

CONTEXT = 128  # tokens, of the tiny model
AGGREGATIONS = ["token", "sequence", "constant"]

pytestmark = pytest.mark.usefixtures("exact")


def round_of(
    folder: Path,
    config: TrainerConfig,
    rollouts: Sequence[Rollout],
    advantages: Sequence[Any],
    weights: list[dict[str, Tensor]] | None = None,
    reference: Path | None = None,
) -> tuple[list[dict[str, Tensor]], dict[str, float]]:
    """The gradients with which a fresh trainer comes to the steps of its round, and what it reports.

    `weights` is given the model's weights after each step.
    """
    trainer = Trainer.load(folder, config, reference=reference)
    gradients: list[dict[str, Tensor]] = []
    step = trainer.weights.step

    def record() -> float:
        gradients.append({name: own.clone() for name, own in trainer.weights.gradients.items()})
        norm = step()
        if weights is not None:
            weights.append({name: tensor.clone() for name, tensor in trainer.model.state_dict().items()})
        return norm

    trainer.weights.step = record  # pyright: ignore[reportAttributeAccessIssue]
    return gradients, trainer.update(rollouts, advantages)


def gradients_of(model: Any) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def assert_close(left: dict[str, Tensor], right: dict[str, Tensor], tolerance: float = 1e-6) -> None:
    assert left.keys() == right.keys()
    for name in left:
        torch.testing.assert_close(left[name], right[name], atol=tolerance, rtol=1e-4, msg=name)


# --- settings


def test_two_steps_are_two_of_plain_adamw(folder: Path, rollouts: list[Rollout]) -> None:
    """The weights after a round of two steps in many microbatches: warm-up, clipping, decay, and ratios that are not 1.

    Epsilon is large: next to 0, Adam makes a step of any rounding error.
    """
    optimizer = OptimizerConfig(learning_rate=0.02, warmup_steps=3, epsilon=1e-3, weight_decay=0.1, max_grad_norm=0.5)
    config = trainer_config(steps_per_round=2, microbatch_tokens=15).model_copy(update={"optimizer": optimizer})
    weights: list[dict[str, Tensor]] = []
    round_of(folder, config, rollouts, ADVANTAGES, weights)

    before, model = plain_model(folder), plain_model(folder)
    plain = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), eps=1e-3, weight_decay=0.1)
    ratios: list[float] = []
    for step, groups in enumerate([(0, 2), (1,)]):
        own = [(row, a) for row, a in zip(rollouts, ADVANTAGES, strict=True) if row.group in groups]
        tokens = sum(len(row.token_ids) for row, _ in own)
        plain.zero_grad()
        for row, advantage in own:
            place = (row.prompt_token_ids, row.token_ids)
            ratio = (plain_logprobs(model, *place) - plain_logprobs(before, *place).detach()).exp()
            ratios += ratio.tolist() if step else []
            (-torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage).sum() / tokens).backward()
        assert torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5) > 0.5
        plain.param_groups[0]["lr"] = 0.02 * (step + 1) / 3
        plain.step()
        expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        assert_close(weights[step], expected, 1e-5)
    assert max(abs(ratio - 1) for ratio in ratios) > 0.1  # far enough for the test to mean something


def test_one_ratio_a_completion_in_the_second_step(folder: Path, rollouts: list[Rollout]) -> None:
    """GSPO, equation 5, by the plain model: the second step has group 1 alone, after a step that moved the policy."""
    config = trainer_config(steps_per_round=2, learning_rate=0.02, importance="sequence", aggregation="sequence")
    weights: list[dict[str, Tensor]] = []
    gradients, _ = round_of(folder, config, rollouts, ADVANTAGES, weights)
    before, model = plain_model(folder), plain_model(folder)
    model.load_state_dict(weights[0])
    ratios = []
    for row, advantage in zip(rollouts, ADVANTAGES, strict=True):
        if row.group == 1:
            place = (row.prompt_token_ids, row.token_ids)
            ratio = (plain_logprobs(model, *place) - plain_logprobs(before, *place).detach()).mean().exp()
            ratios.append(ratio.item())
            (-torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage) / len(LENGTHS[1])).backward()
    assert min(abs(ratio - 1) for ratio in ratios) > 0.01  # far enough for the test to mean something
    assert_close(gradients[1], gradients_of(model), 1e-5)


@pytest.mark.parametrize("importance", ["token", "sequence"])
def test_an_advantage_for_each_token(folder: Path, rollouts: list[Rollout], importance: str) -> None:
    """By the plain model. One of a token that the policy did not write is nothing, be it a NaN or a signal."""
    chance = torch.Generator().manual_seed(4)
    advantages = [torch.randn(len(row.token_ids), generator=chance).tolist() for row in rollouts]
    masks = [[place != 1 for place in range(len(row.token_ids))] for row in rollouts]
    some = [dataclasses.replace(row, loss_mask=mask) for row, mask in zip(rollouts, masks, strict=True)]
    for row, junk in zip(advantages, [math.nan, 5.0] * 5, strict=False):
        if len(row) > 1:
            row[1] = junk
    (found,), metrics = round_of(folder, trainer_config(importance=importance), some, advantages)
    model: Any = plain_model(folder)
    tokens = sum(map(sum, masks))
    for row, own, mask in zip(some, advantages, masks, strict=True):
        logprobs = plain_logprobs(model, row.prompt_token_ids, row.token_ids)[torch.tensor(mask)]
        (-(torch.tensor(own)[torch.tensor(mask)] * logprobs).sum() / tokens).backward()
    assert_close(found, gradients_of(model))
    assert metrics["tokens"] == tokens


def test_signal_only_where_the_policy_did_not_write_is_none(folder: Path, rollouts: list[Rollout]) -> None:
    foreign = [dataclasses.replace(row, loss_mask=[True, *[False] * (len(row.token_ids) - 1)]) for row in rollouts]
    advantages = [[0.0, *[1.0] * (len(row.token_ids) - 1)] for row in rollouts]
    _, metrics = round_of(folder, trainer_config(), foreign, advantages)
    assert (metrics["skipped"], metrics["useful_groups"]) == (1.0, 0.0)


def test_the_extremes_against_the_sampler(folder: Path, rollouts: list[Rollout]) -> None:
    shifted = [
        dataclasses.replace(row, sampler_logprobs=[p + shift for p in row.sampler_logprobs])
        for row, shift in zip(rollouts, [math.log(2), -math.log(1.5), *[0.0] * 7], strict=True)
    ]
    for budget in (2048, 12):  # in one microbatch and in several
        config = trainer_config(microbatch_tokens=budget, sampler_ratio_band=(0.1, 10.0))
        _, metrics = round_of(folder, config, shifted, ADVANTAGES)
        assert metrics["sampler_ratio_min"] == pytest.approx(0.5, rel=1e-4)
        assert metrics["sampler_ratio_max"] == pytest.approx(1.5, rel=1e-4)


# --- rollouts out of the ordinary


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_group_of_one_and_a_group_of_nulls_leave_no_trace(
    folder: Path, rollouts: list[Rollout], aggregation: str
) -> None:
    """One completion has no baseline to differ from; a group that the grader failed on has no rewards at all."""
    config = trainer_config(aggregation=aggregation)
    alone = sampled_groups(folder, [[5]], seed=40)
    nulls = [dataclasses.replace(row, problem_id="nulls") for row in sampled_groups(folder, [[3, 4]], seed=41)]
    alone = [dataclasses.replace(row, problem_id="alone") for row in alone]
    extra = [*group_advantages(torch.tensor([[1.0]]))[0], *group_advantages(torch.tensor([[math.nan] * 2]))[0]]
    (found,), metrics = round_of(folder, config, [*rollouts, *alone, *nulls], [*ADVANTAGES, *map(float, extra)])
    (expected,), _ = round_of(folder, config, rollouts, ADVANTAGES)
    assert_close(found, expected, 0.0)
    assert (metrics["groups"], metrics["useful_groups"]) == (5.0, 3.0)


@pytest.mark.parametrize("rewards", [[[1.0]] * 9, [[math.nan] * 3] * 3, [[1.0, 1.0, 1.0]] * 3])
def test_a_round_without_any_signal_takes_no_step(
    folder: Path, rollouts: list[Rollout], rewards: list[list[float]]
) -> None:
    """Groups of one, nothing but nulls, or groups of equal rewards."""
    advantages = group_advantages(torch.tensor(rewards)).flatten().tolist()
    gradients, metrics = round_of(folder, trainer_config(), rollouts, advantages)
    assert gradients == []
    assert (metrics["skipped"], metrics["useful_groups"]) == (1.0, 0.0)


def test_groups_of_equal_rewards_are_pulled_to_the_reference_and_no_more(
    folder: Path, rollouts: list[Rollout], tmp_path: Path
) -> None:
    """With a KL term they take part, and are in the denominator: by the plain models."""
    config = trainer_config(learning_rate=0.01)
    mover = Trainer.load(folder, config)
    mover.update(rollouts, ADVANTAGES)
    mover.save_checkpoint(tmp_path / "moved")
    model, reference = plain_model(tmp_path / "moved"), plain_model(folder)
    places = [(row.prompt_token_ids, row.token_ids) for row in rollouts]
    with torch.no_grad():
        sampled = [
            dataclasses.replace(row, sampler_logprobs=plain_logprobs(model, *place).tolist())
            for row, place in zip(rollouts, places, strict=True)
        ]
    advantages = [*ADVANTAGES[:5], 0.0, 0.0, 0.0, 0.0]
    kl = trainer_config(kl_coefficient=0.5)
    (found,), metrics = round_of(tmp_path / "moved", kl, sampled, advantages, reference=folder)
    tokens = sum(map(sum, LENGTHS))
    for place, advantage in zip(places, advantages, strict=True):
        logprobs = plain_logprobs(model, *place)
        difference = plain_logprobs(reference, *place).detach() - logprobs
        pull = 0.5 * (difference.exp() - difference - 1).sum()
        ((pull - advantage * logprobs.sum()) / tokens).backward()
    assert_close(found, gradients_of(model))
    assert (metrics["groups"], metrics["useful_groups"], metrics["tokens"]) == (3.0, 2.0, tokens)
    assert metrics["kl"] > 1e-4


def test_log_probabilities_of_an_empty_completion_are_none(folder: Path, rollouts: list[Rollout]) -> None:
    trainer = Trainer.load(folder, trainer_config(microbatch_tokens=12))
    empty = rollout(rollouts[0].prompt_token_ids, [], 0, 9)
    found = trainer.logprobs([empty, *rollouts])
    assert found[0] == []
    for row, logprobs in zip(rollouts, found[1:], strict=True):
        assert logprobs == pytest.approx(row.sampler_logprobs, abs=1e-4)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("coefficient", [0.0, 0.1])
def test_an_empty_completion_is_graded_but_has_nothing_to_train_on(
    folder: Path, rollouts: list[Rollout], aggregation: str, coefficient: float
) -> None:
    """Its reward counts in the baseline; it is in no denominator."""
    config = trainer_config(aggregation=aggregation, kl_coefficient=coefficient)
    prompts = {row.group: row.prompt_token_ids for row in rollouts}
    empty = [dataclasses.replace(rollout(prompts[1], [], 1, 9), sampler_logprobs=[], problem_id=rollouts[3].problem_id)]
    (found,), metrics = round_of(folder, config, [*empty, *rollouts], [-1.0, *ADVANTAGES])
    (expected,), _ = round_of(folder, config, rollouts, ADVANTAGES)
    assert_close(found, expected, 0.0)
    assert metrics["tokens"] == sum(map(sum, LENGTHS))
    _, nothing = round_of(folder, config, empty, [-1.0])
    assert nothing["skipped"] == 1.0


def test_a_completion_that_fills_the_context(folder: Path, rollouts: list[Rollout]) -> None:
    """Up to the model's last position, beside short ones: REINFORCE by the plain model."""
    prompt = random_tokens(3, 70)
    model: Any = plain_model(folder)
    whole = random_tokens(CONTEXT - len(prompt), 71)
    with torch.no_grad():
        sampler = plain_logprobs(model, prompt, whole).tolist()
    full = dataclasses.replace(rollout(prompt, whole, 7, 0, sampler=sampler), finish_reason="length")
    more, advantages = [*rollouts, full], [*ADVANTAGES, -1.0]
    (found,), metrics = round_of(folder, trainer_config(microbatch_tokens=100), more, advantages)
    tokens = sum(len(row.token_ids) for row in more)
    for row, advantage in zip(more, advantages, strict=True):
        (-advantage * plain_logprobs(model, row.prompt_token_ids, row.token_ids).sum() / tokens).backward()
    assert_close(found, gradients_of(model))
    assert metrics["tokens"] == tokens
