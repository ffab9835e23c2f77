"""The trainer: what a round or a lesson does to the weights, against the plain model, and what it leaves out."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from conf.schema import TrainerConfig
from models.optim.master_weights import MasterWeights
from models.rollout import Rollout
from models.trainer import Trainer
from tests.models.support.tiny import (
    ADVANTAGES,
    LENGTHS,
    plain_logprobs,
    plain_model,
    random_tokens,
    sampled_groups,
    trainer_config,
    write_tiny,
)
from tests.models.support.weights import gradients_of_steps, weights_of


def gradient_of(folder: Path, config: TrainerConfig, rollouts: Sequence[Rollout], advantages: Any) -> dict[str, Tensor]:
    trainer = Trainer.load(folder, config)
    (gradient,) = gradients_of_steps(trainer, lambda: trainer.update(rollouts, advantages))
    return gradient


def assert_close(left: dict[str, Tensor], right: dict[str, Tensor], tolerance: float = 1e-6) -> None:
    assert left.keys() == right.keys()
    for name in left:
        torch.testing.assert_close(left[name], right[name], atol=tolerance, rtol=1e-4, msg=name)


def reinforce(folder: Path, rollouts: Sequence[Rollout], advantages: Sequence[float]) -> dict[str, Tensor]:
    """The plain model's gradient of −Σ A log π ÷ tokens."""
    model: Any = plain_model(folder)
    tokens = sum(len(rollout.token_ids) for rollout in rollouts)
    for rollout, advantage in zip(rollouts, advantages, strict=True):
        logprobs = plain_logprobs(model, rollout.prompt_token_ids, rollout.token_ids)
        (-advantage * logprobs.sum() / tokens).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


# --- the gradient of a round


@pytest.mark.usefixtures("exact")
def test_the_gradient_is_reinforce_with_a_baseline(folder: Path, rollouts: list[Rollout]) -> None:
    found = gradient_of(folder, trainer_config(), rollouts, ADVANTAGES)
    assert_close(found, reinforce(folder, rollouts, ADVANTAGES))


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
def test_neither_the_cut_nor_the_order_shows(folder: Path, rollouts: list[Rollout], aggregation: str) -> None:
    expected = gradient_of(folder, trainer_config(aggregation=aggregation), rollouts, ADVANTAGES)

    @given(st.permutations(range(len(rollouts))), st.integers(1, 60))
    @settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
    def law(order: list[int], budget: int) -> None:
        config = trainer_config(aggregation=aggregation, microbatch_tokens=budget)
        shuffled = gradient_of(folder, config, [rollouts[i] for i in order], [ADVANTAGES[i] for i in order])
        assert_close(shuffled, expected)

    law()


@pytest.mark.usefixtures("exact")
def test_an_advantage_for_each_token_as_one_for_all(folder: Path, rollouts: list[Rollout]) -> None:
    spread = [[a] * len(rollout.token_ids) for a, rollout in zip(ADVANTAGES, rollouts, strict=True)]
    config = trainer_config()
    assert_close(gradient_of(folder, config, rollouts, spread), gradient_of(folder, config, rollouts, ADVANTAGES), 0.0)


def test_groups_without_signal_and_null_rewards_leave_no_trace(folder: Path, rollouts: list[Rollout]) -> None:
    """The denominator too: the gradients are the same bit for bit."""
    extra = sampled_groups(folder, [[9, 9], [8, 8, 8]], seed=50)
    extra = [dataclasses.replace(r, group=r.group + 10, problem_id="extra") for r in extra]
    nulls = [dataclasses.replace(rollouts[0], sample=7, token_ids=random_tokens(5, 5))]
    nulls = [dataclasses.replace(null, sampler_logprobs=[-1.0] * 5, loss_mask=[True] * 5) for null in nulls]
    more = [*extra[:2], *rollouts, *nulls, *extra[2:]]
    advantages = [0.0, 0.0, *ADVANTAGES, math.nan, math.nan, math.nan, 0.0]
    trainer = Trainer.load(folder, trainer_config())
    metrics: dict[str, float] = {}
    (found,) = gradients_of_steps(trainer, lambda: metrics.update(trainer.update(more, advantages)))
    assert_close(found, gradient_of(folder, trainer_config(), rollouts, ADVANTAGES), 0.0)
    assert (metrics["groups"], metrics["useful_groups"]) == (5.0, 3.0)
    assert metrics["tokens"] == sum(map(sum, LENGTHS))


def test_cut_completions_are_masked_if_asked(folder: Path, rollouts: list[Rollout]) -> None:
    cut = [dataclasses.replace(r, finish_reason="length") if i == 0 else r for i, r in enumerate(rollouts)]
    trained = gradient_of(folder, trainer_config(), cut, ADVANTAGES)
    assert_close(trained, gradient_of(folder, trainer_config(), rollouts, ADVANTAGES), 0.0)
    masked = gradient_of(folder, trainer_config(overlong="mask"), cut, ADVANTAGES)
    assert_close(masked, gradient_of(folder, trainer_config(), rollouts[1:], ADVANTAGES[1:]), 0.0)


@pytest.mark.usefixtures("exact")
def test_tokens_that_the_policy_did_not_write_are_read_but_not_trained(folder: Path, rollouts: list[Rollout]) -> None:
    """A tool's output within a completion: no gradient, not in the denominator, in the context all the same."""
    masks = [[place % 3 != 1 for place in range(len(r.token_ids))] for r in rollouts]
    some = [dataclasses.replace(r, loss_mask=mask) for r, mask in zip(rollouts, masks, strict=True)]
    found = gradient_of(folder, trainer_config(), some, ADVANTAGES)
    model: Any = plain_model(folder)
    tokens = sum(map(sum, masks))
    for r, advantage, mask in zip(rollouts, ADVANTAGES, masks, strict=True):
        logprobs = plain_logprobs(model, r.prompt_token_ids, r.token_ids)[torch.tensor(mask)]
        (-advantage * logprobs.sum() / tokens).backward()
    assert_close(found, {name: parameter.grad for name, parameter in model.named_parameters()})


@pytest.mark.usefixtures("exact")
def test_two_problems_with_groups_of_one_number_keep_their_prompts(folder: Path, rollouts: list[Rollout]) -> None:
    alike = [dataclasses.replace(rollout, group=0) for rollout in rollouts]
    trainer = Trainer.load(folder, trainer_config())
    metrics: dict[str, float] = {}
    (found,) = gradients_of_steps(trainer, lambda: metrics.update(trainer.update(alike, ADVANTAGES)))
    assert_close(found, gradient_of(folder, trainer_config(), rollouts, ADVANTAGES), 0.0)
    assert metrics["groups"] == 3.0


@pytest.mark.usefixtures("exact")
def test_the_second_step_of_a_round_knows_the_true_old_policy(folder: Path, rollouts: list[Rollout]) -> None:
    """Against the plain model: step 2 has group 1 alone, its ratios are to the policy before step 1."""
    config = trainer_config(steps_per_round=2, learning_rate=0.02)
    trainer = Trainer.load(folder, config)
    before: Any = plain_model(folder)
    between: dict[str, Tensor] = {}
    step = trainer.weights.step

    def remember() -> float:
        norm = step()
        between.update({} if between else weights_of(trainer))
        return norm

    trainer.weights.step = remember  # pyright: ignore[reportAttributeAccessIssue]
    metrics: dict[str, float] = {}
    gradients = gradients_of_steps(trainer, lambda: metrics.update(trainer.update(rollouts, ADVANTAGES)))
    assert len(gradients) == trainer.step == 2
    first = [i for i, rollout in enumerate(rollouts) if rollout.group != 1]
    assert_close(gradients[0], reinforce(folder, [rollouts[i] for i in first], [ADVANTAGES[i] for i in first]))

    model: Any = plain_model(folder)
    model.load_state_dict(between)
    clipped = 0
    for rollout, advantage in zip(rollouts, ADVANTAGES, strict=True):
        if rollout.group != 1:
            continue
        place = (rollout.prompt_token_ids, rollout.token_ids)
        ratio = (plain_logprobs(model, *place) - plain_logprobs(before, *place).detach()).exp()
        bounded = ratio.clamp(0.8, 1.28)
        clipped += int((bounded * advantage < ratio * advantage).sum())
        (-torch.minimum(ratio * advantage, bounded * advantage).sum() / sum(LENGTHS[1])).backward()
    assert_close(gradients[1], {name: parameter.grad for name, parameter in model.named_parameters()}, 1e-5)
    assert clipped > 0  # the policy moved far enough for the test to mean something
    assert metrics["clip_share"] == pytest.approx(clipped / sum(map(sum, LENGTHS)))


@pytest.mark.usefixtures("exact")
def test_the_reference_pulls_back(folder: Path, rollouts: list[Rollout], tmp_path: Path) -> None:
    """At the reference k3 has neither value nor gradient; away from it, both. It is loaded only if it is used."""
    config = trainer_config(kl_coefficient=0.5)
    trainer = Trainer.load(folder, config)
    metrics: dict[str, float] = {}
    (found,) = gradients_of_steps(trainer, lambda: metrics.update(trainer.update(rollouts, ADVANTAGES)))
    assert metrics["kl"] == pytest.approx(0.0, abs=1e-6)
    assert_close(found, gradient_of(folder, trainer_config(), rollouts, ADVANTAGES))
    trainer.save_checkpoint(tmp_path / "moved")
    moved = Trainer.load(tmp_path / "moved", config, reference=folder)
    assert moved.update(rollouts, ADVANTAGES)["kl"] > 1e-6
    assert Trainer.load(folder, trainer_config(), reference=tmp_path / "missing").reference is None


def test_what_a_round_reports(folder: Path, rollouts: list[Rollout]) -> None:
    metrics = Trainer.load(folder, trainer_config()).update(rollouts, ADVANTAGES)
    assert metrics["skipped"] == metrics["masked_share"] == metrics["clip_share"] == metrics["non_finite_steps"] == 0.0
    assert metrics["tokens"] == sum(map(sum, LENGTHS))
    assert 0 < metrics["entropy"] < math.log(97)
    assert metrics["sampler_ratio"] == pytest.approx(1.0, abs=0.05)  # the rollouts' are of fp32
    assert 0.99 < metrics["effective_sample_share"] < 1.0 + 1e-6
    assert 0 < metrics["mismatch"] <= metrics["mismatch_max"] < 0.3
    assert metrics["grad_norm"] > 0
    assert all(math.isfinite(value) for value in metrics.values())


def test_a_round_makes_good_answers_likelier(folder: Path, rollouts: list[Rollout]) -> None:
    trainer = Trainer.load(folder, trainer_config(learning_rate=3e-3))

    def gain() -> float:
        rows = trainer.completion_logprobs(trainer._trained(rollouts, [torch.tensor(a) for a in ADVANTAGES]))
        return sum(ADVANTAGES[row] * float(logprobs.sum()) for row, logprobs in rows.items())

    before = gain()
    for _ in range(3):
        trainer.update(rollouts, ADVANTAGES)
    assert gain() > before + 1.0


# --- lessons


@pytest.mark.usefixtures("exact")
def test_a_lesson_is_the_cross_entropy_of_its_answers(folder: Path) -> None:
    examples = [(random_tokens(4, 1), random_tokens(3, 2)), (random_tokens(9, 3), random_tokens(1, 4))]
    model: Any = plain_model(folder)
    loss = -sum(plain_logprobs(model, *example).sum() for example in examples) / 4
    loss.backward()  # pyright: ignore
    trainer = Trainer.load(folder, trainer_config(microbatch_tokens=8))
    metrics: dict[str, float] = {}
    (found,) = gradients_of_steps(trainer, lambda: metrics.update(trainer.imitate(examples)))
    assert_close(found, {name: parameter.grad for name, parameter in model.named_parameters()})
    assert metrics["loss"] == pytest.approx(float(loss.detach()))  # pyright: ignore
    assert metrics["tokens"] == 4.0


def test_steps_that_follow_upon_each_other_are_settled_by_other_chances(tmp_path: Path) -> None:
    """A step that the next one takes back is taken back in the mean, and not kept in the same weights for good."""
    student = write_tiny(tmp_path / "student")
    (tmp_path / "lesson").symlink_to(student)
    moved = []
    # The same weights by another name, and at another step.
    for checkpoint, step in ((student, 1), (tmp_path / "lesson", 1), (student, 2), (student, 1)):
        trainer = Trainer(checkpoint, trainer_config())
        trainer.weights = MasterWeights(trainer.model.bfloat16(), trainer.config.optimizer)
        before = {name: weight.clone() for name, weight in trainer.weights.trained.items()}
        for remainder in trainer.weights.remainders.values():
            remainder.fill_(2**13)  # an eighth of the last place
        trainer.weights.step_count = step
        trainer.round_stochastically()
        moved.append(torch.cat([(before[name] != w).flatten() for name, w in trainer.weights.trained.items()]))
    first, *others, again = moved
    assert first.equal(again)
    assert float(first.float().mean()) == pytest.approx(1 / 8, abs=0.02)
    for other in others:
        assert float(other[first].float().mean()) == pytest.approx(1 / 8, abs=0.05)
