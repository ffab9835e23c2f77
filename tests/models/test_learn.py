"""The day's channels on a tiny model: steps of the intended effect, limits that hold, and the literal rule."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from conf.sections.teaching import TeachConfig
from models.learn import (
    blame,
    learn_from_conversation,
    learn_from_correction,
    learn_from_human,
    learn_from_selection,
    learn_with_traces,
    praise,
    wrong_from,
)
from models.lessons.day_copy import DayCopy
from models.lessons.outcome import LessonOutcome
from models.td import trace_weights
from tests.models.support.tiny import plain_logprobs, plain_model, random_tokens

PROMPT = random_tokens(5, 1)
ANSWERS = [random_tokens(length, 10 + length) for length in (4, 7, 5, 9, 6)]
ANCHORS = [(random_tokens(4, 50 + n), random_tokens(6, 60 + n)) for n in range(4)]
WIDE = TeachConfig(step_nats=1.0, kl_per_lesson=10.0, kl_of_day=10.0)
MakeDay = Callable[[TeachConfig], DayCopy]


@pytest.fixture
def make_day(folder: Path) -> MakeDay:
    return lambda config: DayCopy(folder, config, ANCHORS)


def sums(day: DayCopy) -> list[float]:
    return [float(row.sum()) for row in day.logprobs(PROMPT, ANSWERS)]


CHANNELS: dict[str, Callable[[DayCopy], LessonOutcome]] = {
    "words": lambda day: learn_from_human(day, PROMPT, ANSWERS[0]),
    "correction": lambda day: learn_from_correction(day, PROMPT, ANSWERS[1], ANSWERS[2]),
    "selection": lambda day: learn_from_selection(day, PROMPT, ANSWERS, 3),
    "praise": lambda day: praise(day, PROMPT, ANSWERS[4]),
    "blame": lambda day: blame(day, PROMPT, ANSWERS[4]),
    "wrong from": lambda day: wrong_from(day, PROMPT, ANSWERS[3], 2),
    "traces": lambda day: learn_with_traces(day, PROMPT, ANSWERS[3], [0.0] * 8 + [1.0]),
}


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_first_lesson_is_a_whole_step(make_day: MakeDay, channel: str) -> None:
    day = make_day(WIDE)
    before = sums(day)
    taught = CHANNELS[channel](day)
    changes = [late - early for early, late in zip(before, sums(day), strict=True)]
    assert (taught.learned, taught.intended_nats, taught.halvings) == (True, pytest.approx(1.0), 0)
    assert taught.change_nats == pytest.approx(1.0, rel=0.2)
    others = sum(changes[n] for n in (0, 1, 2, 4)) / 4
    expected = {
        "words": changes[0],
        "correction": changes[2] - changes[1],  # they differ from the first token on
        "selection": changes[3] - others,
        "praise": changes[4],
        "blame": -changes[4],
    }
    if channel in expected:  # the others change the probability of tokens, not of whole answers
        assert taught.change_nats == pytest.approx(expected[channel], abs=1e-3)


def test_a_step_is_as_long_as_intended_in_every_state_of_learning(make_day: MakeDay) -> None:
    """The intention shrinks as the preference is learned, and the step with it."""
    day = make_day(WIDE)
    intended = []
    for _ in range(12):
        taught = CHANNELS["selection"](day)
        assert taught.change_nats == pytest.approx(taught.intended_nats, rel=0.2)
        intended.append(taught.intended_nats)
    assert intended == sorted(intended, reverse=True)
    assert intended[-1] < 0.3


def test_the_champion_scores_the_answers_as_transformers_does_and_a_new_copy_equals_it(
    make_day: MakeDay, folder: Path
) -> None:
    day, model = make_day(WIDE), plain_model(folder)
    for found, answer in zip(day.logprobs(PROMPT, ANSWERS), ANSWERS, strict=True):
        assert torch.allclose(found.cpu(), plain_logprobs(model, PROMPT, answer), atol=1e-4)
    assert day.day_kl() == pytest.approx(0.0, abs=1e-6)


def test_adversarial_clicks_stay_within_the_limits(make_day: MakeDay) -> None:
    config = TeachConfig(step_nats=10.0)
    day, chance = make_day(config), np.random.default_rng(0)
    shortened = 0
    for click in range(60):
        channel = str(chance.choice(["selection", "praise", "blame", "wrong from"]))
        taught = CHANNELS[channel](day) if click % 4 else blame(day, *ANCHORS[click % len(ANCHORS)])
        shortened += taught.halvings > 0
        assert day.day_kl() == pytest.approx(taught.day_kl, abs=1e-6)
        assert taught.day_kl <= config.kl_of_day
        assert taught.kl <= config.kl_per_lesson or not taught.learned
    assert shortened > 15


def test_what_exceeds_a_limit_is_halved_and_then_refused(make_day: MakeDay) -> None:
    free = make_day(WIDE)
    kl = CHANNELS["praise"](free).kl
    halved = CHANNELS["praise"](make_day(TeachConfig(step_nats=1.0, kl_per_lesson=kl / 3, kl_of_day=10.0)))
    assert (halved.learned, halved.halvings) == (True, 1)  # half the step is a quarter of the divergence
    assert 0 < halved.change_nats < 0.7
    day = make_day(TeachConfig(step_nats=1.0, kl_per_lesson=kl / 1000, kl_of_day=10.0))
    before = day.snapshot()
    refused = CHANNELS["praise"](day)
    assert (refused.learned, refused.change_nats, refused.halvings) == (False, 0.0, 3)
    assert all(torch.equal(before[name], after) for name, after in day.snapshot().items())


def test_a_correction_teaches_from_the_first_difference_on(make_day: MakeDay) -> None:
    shared = random_tokens(3, 5)
    bad, good = [*shared, 7, 8], [*shared, 9]
    day = make_day(WIDE)
    before = day.logprobs(PROMPT, [bad, good])
    taught = learn_from_correction(day, PROMPT, bad, good)
    after = day.logprobs(PROMPT, [bad, good])
    tails = [float((late - early)[3:].sum()) for early, late in zip(before, after, strict=True)]
    assert taught.change_nats == pytest.approx(tails[1] - tails[0], abs=1e-3)


def test_the_literal_rule_is_a_gradient_step_of_the_fixed_rate(make_day: MakeDay) -> None:
    """θ + 1e-5 · Σ_t (γλ)^(T−1−t) ∇log π_t, for a reward of 1 at the end."""
    day = make_day(TeachConfig(method="literal"))
    before = day.snapshot()
    (logprobs,) = day._viewed(PROMPT, [ANSWERS[3]]).logprobs
    weights = trace_weights(9, 0.99, 0.95).float().to(logprobs.device)
    gradients = torch.autograd.grad((weights * logprobs).sum(), list(day.adapter.values()), retain_graph=True)
    taught = CHANNELS["traces"](day)
    for (name, after), gradient in zip(day.snapshot().items(), gradients, strict=True):
        assert torch.allclose(after, before[name] + 1e-5 * gradient.to(after.device), rtol=0, atol=1e-9)
    assert taught.change_nats > 0
    pick = make_day(TeachConfig(method="literal"))
    lead = sums(pick)
    CHANNELS["selection"](pick)
    changes = [late - early for early, late in zip(lead, sums(pick), strict=True)]
    assert changes[3] - max(changes[:3] + changes[4:]) > 0


def noting_credit(day: DayCopy) -> list[float]:
    """Return a list that gets the credit of each token of the first answer that is taught."""
    seen, original = list[float](), day.step

    def step(
        prompt: object, answers: list[list[int]], credit: Callable[..., tuple[list[torch.Tensor], float]]
    ) -> LessonOutcome:
        zeros = [torch.zeros(len(answer)) for answer in answers]
        seen.extend(credit(zeros, zeros)[0][0].tolist())
        return original(prompt, answers, credit)

    day.step = step
    return seen


@pytest.mark.parametrize(
    ("traces", "credit"), [(True, [-(0.9405**2), -0.9405, -1.0] + [0.0] * 6), (False, [0.0, 0.0] + [-1.0] * 7)]
)
def test_with_traces_blame_fades_backwards_from_where_it_goes_wrong(
    make_day: MakeDay, traces: bool, credit: list[float]
) -> None:
    seen = noting_credit(day := make_day(TeachConfig(traces=traces)))
    CHANNELS["wrong from"](day)
    assert seen == pytest.approx(credit)


@pytest.mark.parametrize("traces", [False, True])
def test_of_a_conversation_only_the_assistants_turns_are_taught(make_day: MakeDay, traces: bool) -> None:
    asked, turns = random_tokens(3, 90), [(5, 9), (12, 17)]
    tokens = [*PROMPT, *ANSWERS[0], *asked, *ANSWERS[2]]
    seen = noting_credit(day := make_day(WIDE.model_copy(update={"traces": traces})))
    taught = learn_from_conversation(day, tokens, turns, [0.9, -1.0])
    first, second = ([0.9405**back if traces else 1.0 for back in reversed(range(n))] for n in (4, 5))
    credit = [0.9 * each for each in first] + [0.0] * 3 + [-each for each in second]
    assert seen == pytest.approx(credit)
    assert taught.change_nats == pytest.approx(1.0, rel=0.2)


def talk(day: DayCopy, prompt: list[int], answer: list[int], size: float) -> LessonOutcome:
    whole = len(prompt) + len(answer)
    return learn_from_conversation(day, [*prompt, *answer], [(len(prompt), whole)], [size])


@pytest.mark.parametrize("channel", [praise, blame, talk])
def test_a_weak_reward_takes_a_small_step(make_day: MakeDay, channel: Callable[..., LessonOutcome]) -> None:
    taught = channel(make_day(WIDE), PROMPT, ANSWERS[1], size=0.25)
    assert taught.intended_nats == pytest.approx(0.25)
    assert taught.change_nats == pytest.approx(0.25, rel=0.2)


def test_what_cannot_be_taught() -> None:
    nobody: DayCopy = None
    with pytest.raises(ValueError, match="two different answers"):
        learn_from_selection(nobody, PROMPT, ANSWERS[:1], 0)
    with pytest.raises(ValueError, match="4 tokens"):
        wrong_from(nobody, PROMPT, ANSWERS[0], 4)
