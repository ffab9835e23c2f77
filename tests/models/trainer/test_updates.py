"""A round's and a lesson's gradients and steps, against the plain model, and what is left out of them."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from conf.schema import LoraConfig, OptimizerConfig, TrainerConfig
from models.advantages import group_advantages
from models.optim import master_weights
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
from tests.models.support.weights import Named, assert_close, gradients_of_round, gradients_of_steps, plain_gradients

AGGREGATIONS = ["token", "sequence", "constant"]
CONTEXT = 128  # tokens, of the tiny model
TOKENS = sum(map(sum, LENGTHS))

pytestmark = pytest.mark.usefixtures("exact")


def round_of(
    folder: Path,
    config: TrainerConfig,
    rollouts: Sequence[Rollout],
    advantages: Sequence[Any],
    weights: list[Named] | None = None,
    reference: Path | None = None,
) -> tuple[list[Named], dict[str, float]]:
    """The gradients of a fresh trainer's steps, and what the round reports."""
    return gradients_of_round(Trainer.load(folder, config, reference=reference), rollouts, advantages, weights)


def logprobs_of(model: Any, row: Rollout, temperature: float = 1.0) -> torch.Tensor:
    return plain_logprobs(model, row.prompt_token_ids, row.token_ids, temperature)


# --- the gradient of a step


def test_a_given_solution_was_not_sampled_and_has_the_weight_1(folder: Path, rollouts: list[Rollout]) -> None:
    """Its log-probabilities of 0 would mask it: as if sampled with certainty."""
    zeros = [0.0] * len(rollouts[0].token_ids)
    given = dataclasses.replace(rollouts[0], sampler_logprobs=zeros, finish_reason="given")
    config = trainer_config(sampler_ratio_band=(0.99, 1.01))
    (found,), _ = round_of(folder, config, [given, *rollouts[1:]], ADVANTAGES)
    (expected,), _ = round_of(folder, config, rollouts, ADVANTAGES)
    assert_close(found, expected)
    (masked,), _ = round_of(
        folder, config, [dataclasses.replace(given, finish_reason="stop"), *rollouts[1:]], ADVANTAGES
    )
    with pytest.raises(AssertionError):
        assert_close(masked, expected)


def test_the_gradient_is_reinforce_up_to_the_end_of_the_context(folder: Path, rollouts: list[Rollout]) -> None:
    prompt, model = random_tokens(3, 70), plain_model(folder)
    whole = random_tokens(CONTEXT - len(prompt), 71)
    with torch.no_grad():
        sampler = plain_logprobs(model, prompt, whole).tolist()
    full = dataclasses.replace(rollout(prompt, whole, 7, 0, sampler=sampler), finish_reason="length")
    more, advantages = [*rollouts, full], [*ADVANTAGES, -1.0]
    (found,), metrics = round_of(folder, trainer_config(microbatch_tokens=100), more, advantages)
    for row, advantage in zip(more, advantages, strict=True):
        (-advantage * logprobs_of(model, row).sum() / (TOKENS + len(whole))).backward()
    assert_close(found, plain_gradients(model))
    assert metrics["tokens"] == TOKENS + len(whole)


@pytest.mark.parametrize("importance", ["token", "sequence"])
def test_an_advantage_for_each_token(folder: Path, rollouts: list[Rollout], importance: str) -> None:
    """A token that the policy did not write (a tool's output, say) is read but not trained on, whatever its value.

    Neither the cut into microbatches nor the order of the rollouts shows.
    """
    chance = torch.Generator().manual_seed(4)
    advantages = [torch.randn(len(row.token_ids), generator=chance).tolist() for row in rollouts]
    masks = [[place != 1 for place in range(len(row.token_ids))] for row in rollouts]
    some = [dataclasses.replace(row, loss_mask=mask) for row, mask in zip(rollouts, masks, strict=True)]
    for row, junk in zip(advantages, [math.nan, 5.0] * 5, strict=False):
        if len(row) > 1:
            row[1] = junk
    config = trainer_config(importance=importance, microbatch_tokens=15)
    mixed = sorted(range(len(some)), key=lambda row: row % 2)
    (found,), metrics = round_of(folder, config, [some[row] for row in mixed], [advantages[row] for row in mixed])
    model = plain_model(folder)
    tokens = sum(map(sum, masks))
    for row, own, mask in zip(some, advantages, masks, strict=True):
        written = torch.tensor(mask)
        (-(torch.tensor(own)[written] * logprobs_of(model, row)[written]).sum() / tokens).backward()
    assert_close(found, plain_gradients(model))
    assert metrics["tokens"] == tokens


@pytest.mark.parametrize("temperature", [1.0, 1.6])
def test_two_steps_of_plain_adamw(
    folder: Path, rollouts: list[Rollout], temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In many microbatches: warm-up, clipping, and ratios to the policy before the round, at a temperature.

    Epsilon is large: next to 0, Adam makes a step of any rounding error.
    """
    monkeypatch.setattr(master_weights, "EPSILON", 1e-3)
    monkeypatch.setattr(master_weights, "MAX_GRAD_NORM", 0.5)
    optimizer = OptimizerConfig(learning_rate=0.02, warmup_steps=3)
    config = trainer_config(steps_per_round=2, microbatch_tokens=15, temperature=temperature)
    config = config.model_copy(update={"optimizer": optimizer})
    before, model = plain_model(folder), plain_model(folder)
    with torch.no_grad():
        sampled = [(row, logprobs_of(before, row, temperature).tolist()) for row in rollouts]
    rollouts = [dataclasses.replace(row, sampler_logprobs=own) for row, own in sampled]
    weights: list[Named] = []
    _, metrics = round_of(folder, config, rollouts, ADVANTAGES, weights)
    assert metrics["mismatch_max"] < 1e-3

    plain = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), eps=1e-3, weight_decay=0.0)
    ratios: list[float] = []
    clipped = 0
    for step, groups in enumerate([(0, 2), (1,)]):
        own = [(row, a) for row, a in zip(rollouts, ADVANTAGES, strict=True) if row.group in groups]
        tokens = sum(len(row.token_ids) for row, _ in own)
        plain.zero_grad()
        for row, advantage in own:
            old = logprobs_of(before, row, temperature).detach()
            ratio = (logprobs_of(model, row, temperature) - old).exp()
            bounded = ratio.clamp(0.8, 1.28)
            ratios += ratio.tolist() if step else []
            clipped += int((bounded * advantage < ratio * advantage).sum())
            (-torch.minimum(ratio * advantage, bounded * advantage).sum() / tokens).backward()
        assert torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5) > 0.5
        plain.param_groups[0]["lr"] = 0.02 * (step + 1) / 3
        plain.step()
        assert_close(weights[step], dict(model.state_dict()), 1e-5)
    assert max(abs(ratio - 1) for ratio in ratios) > 0.1  # far enough for the test to mean something
    assert metrics["clip_share"] == pytest.approx(clipped / TOKENS)


def test_groups_of_equal_rewards_are_only_pulled_to_the_reference(
    folder: Path, rollouts: list[Rollout], tmp_path: Path
) -> None:
    """With a KL term they take part in it, and in its denominator alone: by the plain models, at a temperature."""
    mover = Trainer.load(
        folder, trainer_config(learning_rate=0.01), reference=tmp_path / "not loaded without a KL term"
    )
    mover.update(rollouts, ADVANTAGES)
    mover.save_checkpoint(tmp_path / "moved")
    model, reference = plain_model(tmp_path / "moved"), plain_model(folder)
    with torch.no_grad():
        sampled = [dataclasses.replace(row, sampler_logprobs=logprobs_of(model, row, 1.6).tolist()) for row in rollouts]
    advantages = [*ADVANTAGES[:5], 0.0, 0.0, 0.0, 0.0]
    kl = trainer_config(kl_coefficient=0.5, temperature=1.6)
    (found,), metrics = round_of(tmp_path / "moved", kl, sampled, advantages, reference=folder)
    useful = sum(len(row.token_ids) for row in sampled[:5])
    for row, advantage in zip(sampled, advantages, strict=True):
        logprobs = logprobs_of(model, row, 1.6)
        difference = logprobs_of(reference, row, 1.6).detach() - logprobs
        pull = 0.5 * (difference.square() / 2).sum() / TOKENS
        (pull - advantage * logprobs.sum() / useful).backward()
    assert_close(found, plain_gradients(model))
    assert (metrics["groups"], metrics["useful_groups"], metrics["tokens"]) == (3.0, 2.0, TOKENS)
    assert metrics["kl"] > 1e-4


def test_adapters_are_pulled_to_the_model_without_them(folder: Path, rollouts: list[Rollout]) -> None:
    """There is no second model, and the adapters learn as with one."""
    config = trainer_config(kl_coefficient=0.5, learning_rate=0.05, lora=LoraConfig(rank=4))
    trainer, other = Trainer.load(folder, config), Trainer.load(folder, config)
    assert trainer.reference is None
    other.reference, other.reference_is_base = Trainer.load(folder, trainer_config()).model, False
    metrics = [[each.update(rollouts, ADVANTAGES) for _ in range(2)][-1] for each in (trainer, other)]
    assert metrics[0]["kl"] == metrics[1]["kl"] > 1e-3
    assert all(weight.equal(other.weights.trained[name]) for name, weight in trainer.weights.trained.items())


# --- what is left out


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_what_has_no_signal_leaves_no_trace(folder: Path, rollouts: list[Rollout], aggregation: str) -> None:
    """Groups of equal rewards, of one, of nulls, and a null in a useful group: the gradients are the same bits."""
    equal, alone, nulls = (
        sampled_groups(folder, [sizes], seed=size) for size, sizes in ((40, [9, 9]), (41, [5]), (42, [3, 4]))
    )
    extra = [
        dataclasses.replace(row, problem_id=name)
        for name, rows in (("equal", equal), ("alone", alone), ("nulls", nulls))
        for row in rows
    ]
    null = dataclasses.replace(
        rollouts[0], sample=7, token_ids=random_tokens(5, 5), sampler_logprobs=[-1.0] * 5, loss_mask=[True] * 5
    )
    rewards = [torch.tensor([own]) for own in ([1.0, 1.0], [1.0], [math.nan, math.nan])]
    advantages = [float(a) for own in rewards for a in group_advantages(own)[0]]
    config = trainer_config(aggregation=aggregation)
    more = [*extra[:2], *rollouts, null, *extra[2:]]
    (found,), metrics = round_of(folder, config, more, [*advantages[:2], *ADVANTAGES, math.nan, *advantages[2:]])
    (expected,), _ = round_of(folder, config, rollouts, ADVANTAGES)
    assert_close(found, expected, 0.0, 0.0)
    assert (metrics["groups"], metrics["useful_groups"], metrics["tokens"]) == (6.0, 3.0, TOKENS)


def test_cut_completions_are_masked_if_asked(folder: Path, rollouts: list[Rollout]) -> None:
    cut = [dataclasses.replace(row, finish_reason="length") if i == 0 else row for i, row in enumerate(rollouts)]
    for config, left in ((trainer_config(), 0), (trainer_config(overlong="mask"), 1)):
        (found,), _ = round_of(folder, config, cut, ADVANTAGES)
        (expected,), _ = round_of(folder, trainer_config(), rollouts[left:], ADVANTAGES[left:])
        assert_close(found, expected, 0.0, 0.0)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("coefficient", [0.0, 0.1])
def test_an_empty_completion_is_graded_but_has_nothing_to_train_on(
    folder: Path, rollouts: list[Rollout], aggregation: str, coefficient: float
) -> None:
    """Its reward counts in the baseline; it is in no denominator."""
    config = trainer_config(aggregation=aggregation, kl_coefficient=coefficient)
    prompts = {row.group: row.prompt_token_ids for row in rollouts}
    empty = dataclasses.replace(rollout(prompts[1], [], 1, 9), sampler_logprobs=[], problem_id=rollouts[3].problem_id)
    (found,), metrics = round_of(folder, config, [empty, *rollouts], [-1.0, *ADVANTAGES])
    (expected,), _ = round_of(folder, config, rollouts, ADVANTAGES)
    assert_close(found, expected, 0.0, 0.0)
    assert metrics["tokens"] == TOKENS
    _, nothing = round_of(folder, config, [empty], [-1.0])
    assert nothing["skipped"] == 1.0


def test_signal_only_where_the_policy_did_not_write_is_none(folder: Path, rollouts: list[Rollout]) -> None:
    foreign = [dataclasses.replace(row, loss_mask=[True, *[False] * (len(row.token_ids) - 1)]) for row in rollouts]
    advantages = [[0.0, *[1.0] * (len(row.token_ids) - 1)] for row in rollouts]
    _, metrics = round_of(folder, trainer_config(), foreign, advantages)
    assert (metrics["skipped"], metrics["useful_groups"]) == (1.0, 0.0)


def test_groups_of_one_number_of_two_problems_keep_their_prompts(folder: Path, rollouts: list[Rollout]) -> None:
    alike = [dataclasses.replace(row, group=0) for row in rollouts]
    (found,), metrics = round_of(folder, trainer_config(), alike, ADVANTAGES)
    (expected,), _ = round_of(folder, trainer_config(), rollouts, ADVANTAGES)
    assert_close(found, expected, 0.0, 0.0)
    assert metrics["groups"] == 3.0


# --- lessons


def test_a_lesson_is_the_cross_entropy_of_its_answers(folder: Path) -> None:
    examples = [(random_tokens(4, 1), random_tokens(3, 2)), (random_tokens(9, 3), random_tokens(1, 4))]
    model = plain_model(folder)
    loss = -torch.cat([plain_logprobs(model, *example) for example in examples]).sum() / 4
    loss.backward()
    trainer = Trainer.load(folder, trainer_config(microbatch_tokens=8))
    metrics: dict[str, float] = {}
    (found,) = gradients_of_steps(trainer, lambda: metrics.update(trainer.imitate(examples)))
    assert_close(found, plain_gradients(model))
    assert metrics["loss"] == pytest.approx(float(loss.detach()))
    assert metrics["tokens"] == 4.0
