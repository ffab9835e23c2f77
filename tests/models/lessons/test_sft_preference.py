"""The steps of lessons: their gradients against the plain model, and their order."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import logsigmoid

from conf.sections.lessons import CorrectionsConfig, DistillConfig, FeedbackConfig, PicksConfig
from models.lessons.pace import Pace
from models.lessons.preference_data import Pick, RatedAnswer
from models.lessons.sft_preference import BETA, batches, dpo, imitation, kto
from models.trainer import Trainer
from tests.models.support.tiny import plain_logprobs, plain_model, random_tokens, trainer_config
from tests.models.support.weights import assert_close, gradients_of_steps, plain_gradients, weights_of

END = 1
SHOWN = [[4, 5, 1, 0], [2, 4], [7, 3, 1, 1, 6]]  # tokens of the answers before their end tokens
PICKS = [
    Pick(
        tuple(random_tokens(4, n)),
        tuple((*random_tokens(length, 20 * n + place + 5), END) for place, length in enumerate(lengths)),
        chosen=n % len(lengths),
    )
    for n, lengths in enumerate(SHOWN)
]
RATINGS = [-1.0, 0.5, 1.0, -0.25, 0.1]
JUDGED = [
    RatedAnswer(random_tokens(3 + n, n), [*random_tokens(n % 4, 30 + n), END], rating)
    for n, rating in enumerate(RATINGS)
]


def plain_answer(model: Any, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
    return plain_logprobs(model, prompt, answer).sum()


# --- gradients, against the plain model


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("budget", [2048, 30, 7], ids=["one microbatch", "whole picks", "picks are cut"])
@pytest.mark.parametrize("config", [PicksConfig(epochs=2, batch_size=8), CorrectionsConfig(epochs=2)])
def test_the_gradient_of_a_dpo_step(folder: Path, config: PicksConfig | CorrectionsConfig, budget: int) -> None:
    """The second step: the policy has left the reference by then. A correction is also imitated."""
    trainer = Trainer.load(folder, trainer_config(microbatch_tokens=budget, learning_rate=5e-3))
    steps = dpo(trainer, PICKS, config, seed=1)
    metrics = [next(steps)]
    between = weights_of(trainer)
    (found,) = gradients_of_steps(trainer, lambda: metrics.append(next(steps)))

    reference, policy = plain_model(folder), plain_model(folder)
    policy.load_state_dict(between)
    losses, imitated = [], []
    for pick in PICKS:
        best = pick.answers[pick.chosen]
        picked = ratio(policy, reference, pick.prompt, best)
        others = [answer for place, answer in enumerate(pick.answers) if place != pick.chosen]
        losses += [-logsigmoid(BETA * (picked - ratio(policy, reference, pick.prompt, other))) for other in others]
        imitated += [-plain_answer(policy, pick.prompt, best) / len(best) for _ in others]
    loss = torch.stack(losses).mean()
    if isinstance(config, CorrectionsConfig):
        loss = loss + torch.stack(imitated).mean()
    else:
        assert metrics[0]["loss"] == pytest.approx(math.log(2), abs=1e-6)  # the policy is the reference
    loss.backward()
    assert_close(found, plain_gradients(policy), 2e-6, 1e-3)
    assert metrics[0]["margin"] == metrics[0]["accuracy"] == 0.0
    assert metrics[1]["loss"] == pytest.approx(float(loss.detach()), abs=1e-4)
    assert metrics[1]["loss"] < metrics[0]["loss"]


def ratio(policy: Any, reference: Any, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
    return plain_answer(policy, prompt, answer) - plain_answer(reference, prompt, answer).detach()


@pytest.mark.parametrize("config", [PicksConfig(epochs=30, batch_size=8), CorrectionsConfig(epochs=30)])
def test_picks_are_learned_until_the_answers_have_changed_enough(folder: Path, config: Any) -> None:
    trainer = Trainer.load(folder, trainer_config(learning_rate=2e-2))
    *before, last = (step["kl"] for step in dpo(trainer, PICKS, config, seed=1))
    if isinstance(config, PicksConfig):
        assert max(before) <= config.most_kl < last
    else:
        assert len(before) == 29


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("budget", [2048, 7], ids=["one microbatch", "cut"])
def test_the_gradient_of_a_kto_step(folder: Path, budget: int) -> None:
    config = FeedbackConfig(epochs=2)
    trainer = Trainer.load(folder, trainer_config(microbatch_tokens=budget, learning_rate=5e-3))
    steps = kto(trainer, JUDGED, config, seed=1)
    metrics = [next(steps)]
    reference, policy = plain_model(folder), plain_model(folder)
    policy.load_state_dict(weights_of(trainer))
    (found,) = gradients_of_steps(trainer, lambda: metrics.append(next(steps)))

    order = batches(JUDGED, config, 1)[1]
    pairs = [(one.prompt, order[place - 1].answer) for place, one in enumerate(order)]
    kl = torch.stack([ratio(policy, reference, *pair) for pair in pairs]).mean().detach().clamp(min=0)
    terms = []
    for one in order:
        own = ratio(policy, reference, one.prompt, one.answer) - kl
        same = sum(abs(rating) for rating in RATINGS if rating * one.rating > 0)  # praise and criticism weigh the same
        size = abs(one.rating) * sum(map(abs, RATINGS)) / 2 / same
        terms.append(size * (1 - ((BETA if one.rating > 0 else -BETA) * own).sigmoid()))
    loss = torch.stack(terms).mean()
    loss.backward()
    assert_close(found, plain_gradients(policy), 2e-6, 1e-3)
    assert metrics[0]["loss"] == pytest.approx(sum(map(abs, RATINGS)) / len(RATINGS) / 2)
    assert metrics[0]["kl"] == metrics[0]["desirable"] == metrics[0]["undesirable"] == 0.0
    assert metrics[1]["loss"] == pytest.approx(float(loss.detach()), abs=1e-4)
    assert metrics[1]["kl"] == pytest.approx(float(kl), abs=1e-4)


def test_a_kto_step_of_one_example_has_no_kl_term(folder: Path) -> None:
    curve = list(
        kto(Trainer.load(folder, trainer_config(learning_rate=5e-3)), JUDGED[2:3], FeedbackConfig(epochs=3), 1)
    )
    assert [step["kl"] for step in curve] == [0.0, 0.0, 0.0]
    assert curve[-1]["loss"] < curve[0]["loss"]


# --- the order


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 3), st.integers(0, 9))
def test_every_line_once_an_epoch_in_equal_steps(lines: int, size: int, epochs: int, seed: int) -> None:
    config = PicksConfig(epochs=epochs, batch_size=size)
    found = batches(range(lines), config, seed)
    assert found == batches(range(lines), config, seed)
    assert len(found) == epochs * math.ceil(lines / size)
    assert all(1 <= len(batch) <= size for batch in found)
    assert not found or max(map(len, found)) - min(map(len, found)) <= 1
    each = len(found) // epochs
    for epoch in range(epochs):
        assert Counter(n for batch in found[epoch * each : (epoch + 1) * each] for n in batch) == Counter(range(lines))


# --- distillation

EXAMPLES = [(random_tokens(3, number), random_tokens(2 + number % 3, 50 + number)) for number in range(5)]


def distilled(seed: int, steps: int = 4) -> list[list[Any]]:
    return batches(EXAMPLES, DistillConfig(steps=steps, batch_size=3, max_epochs=6), seed)


def test_distillation_repeats_no_example_before_all_have_come() -> None:
    order = [tuple(map(tuple, example)) for batch in distilled(1, steps=10) for example in batch]
    for start in range(0, 30, 5):
        assert len(set(order[start : start + 5])) == 5
    assert set(Counter(order).values()) == {6}
    assert order[:5] != order[5:10]
    assert distilled(1) == distilled(1) != distilled(2)


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
def test_few_examples_give_few_steps(count: int, size: int, epochs: int, sizes: list[int]) -> None:
    found = batches(EXAMPLES[:count], DistillConfig(steps=6, batch_size=size, max_epochs=epochs), 1)
    assert [len(batch) for batch in found] == sizes
    often = Counter(tuple(map(tuple, example)) for batch in found for example in batch)
    assert max(often.values()) <= epochs


@pytest.mark.parametrize(("schedule", "shares"), [("constant", [1, 1, 1, 1]), ("linear", [1, 0.75, 0.5, 0.25])])
def test_the_schedule_of_the_learning_rate(
    folder: Path, schedule: Literal["constant", "linear"], shares: list[float]
) -> None:
    trainer = Trainer.load(folder, trainer_config(learning_rate=1e-3))
    lesson = imitation(trainer, EXAMPLES, DistillConfig(steps=4, batch_size=2, schedule=schedule), 1)
    rates = {metrics["step"]: trainer.weights.learning_rate for metrics in lesson}
    assert rates == pytest.approx({step: 1e-3 * share for step, share in enumerate(shares, 1)})


@pytest.mark.parametrize(
    ("seconds", "steps"), [(0.0, 2), (2.99, 2), (3.0, 3), (7.5, 7), (99.0, 8)], ids="none two three seven all".split()
)
def test_a_lesson_takes_the_steps_that_fit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, steps: int
) -> None:
    """A step takes one second here. The first two have the planned rates, the later ones those of a shorter lesson."""
    monkeypatch.setattr("models.lessons.pace.time.perf_counter", map(float, count()).__next__)
    trainer, file = Trainer.load(folder, trainer_config(learning_rate=1e-3)), folder.parent / f"{seconds}" / "pace.json"
    even = [(random_tokens(3, number), random_tokens(2, 50 + number)) for number in range(5)]
    lesson = imitation(trainer, even, DistillConfig(steps=8, batch_size=2, schedule="linear"), 1, Pace(seconds, file))
    shares = [trainer.weights.learning_rate / 1e-3 for _ in lesson]
    assert shares == pytest.approx([1, 7 / 8, *(1 - step / steps for step in range(2, steps))])
    assert json.loads(file.read_text()) == {"planned": 8, "steps": steps, "seconds_a_step": 1.0}
