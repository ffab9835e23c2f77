"""On-policy distillation: the tokens' advantages, the gradient they make, and a student that comes nearer."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from models.lessons.on_policy_distillation import teacher_logprobs, token_advantages
from models.trainer import Trainer
from tests.models.support.tiny import (
    VOCABULARY,
    plain_logprobs,
    plain_model,
    random_tokens,
    rollout,
    sampled_groups,
    trainer_config,
)
from tests.models.support.weights import gradients_of_steps

PROMPT = random_tokens(6, 5)


def test_advantages_by_hand() -> None:
    assert token_advantages([-1.0, -3.0, -2.0], [-1.5, -1.0, -2.0]) == [-0.5, 2.0, 0.0]
    assert token_advantages([], []) == []
    assert token_advantages([-1.0, -math.inf], [-math.inf, -1.0]) == [-20.0, 20.0]
    assert math.isnan(token_advantages([math.nan], [-1.0])[0])


def test_the_teachers_logprobs_are_what_transformers_computes(folder: Path, teacher: Path) -> None:
    rollouts = sampled_groups(folder, [[4, 1, 6], [2, 5]])
    rollouts.insert(2, rollout(PROMPT, [], 9, 0))
    found = teacher_logprobs(teacher, trainer_config(microbatch_tokens=12), rollouts)
    model = plain_model(teacher)
    assert found[2] == []
    for one, logprobs in zip(rollouts, found, strict=True):
        if one.token_ids:
            expected = plain_logprobs(model, one.prompt_token_ids, one.token_ids)
            torch.testing.assert_close(torch.tensor(logprobs), expected.detach(), atol=0.1, rtol=0)  # bf16 and fp32


@pytest.mark.usefixtures("exact")
def test_the_gradient_is_that_of_the_reverse_kl(folder: Path, teacher: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At one position, over the whole vocabulary: every token once, from an even sampler, weighted by π ÷ (1/V)."""
    student, other = plain_model(folder), plain_model(teacher)
    policy, expert = (_next_token(model) for model in (student, other))
    (policy.exp() * (policy - expert.detach())).sum().backward()
    even = [math.log(1 / VOCABULARY)]
    rollouts = [rollout(PROMPT, [token], 0, token, sampler=even) for token in range(VOCABULARY)]
    pairs = zip(policy.tolist(), expert.tolist(), strict=True)
    advantages = [token_advantages([own], [teachers]) for own, teachers in pairs]
    monkeypatch.setattr("models.grpo.RATIO_CAP", 1e6)
    trainer = Trainer.load(folder, trainer_config(sampler_ratio_band=(0.0, 1e9), min_useful_groups=1))
    (found,) = gradients_of_steps(trainer, lambda: trainer.update(rollouts, advantages))
    for name, weights in student.named_parameters():
        torch.testing.assert_close(found[name], weights.grad, atol=1e-5, rtol=1e-3)


def _next_token(model: Any) -> torch.Tensor:
    """log π over the vocabulary after the prompt."""
    return model(input_ids=torch.tensor([PROMPT])).logits[0, -1].float().log_softmax(dim=-1)
