"""The daytime lessons. Each turns the owner's feedback into a credit for every token of the answers shown.

A lesson moves the day copy by one step with a chosen effect (see `models/lessons/day_copy.py`). With `method: literal`,
it instead takes a gradient step on the adapter at a fixed rate and without limits, as in the papers behind the project.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

import torch
from torch import Tensor

from models.lessons.day_copy import DayCopy
from models.lessons.outcome import LessonOutcome
from models.td import gae, trace_weights

HUMAN_RATE = 1e-6  # learning rate of the literal method on text that the owner wrote
RATE = 1e-5  # learning rate of the literal method on everything else
GAMMA, LAMBDA = 0.99, 0.95  # discount and trace decay per token
ALIKE = 1e-4  # nats; smaller differences between preferences are ignored

Tokens = Sequence[int]


def learn_from_human(day: DayCopy, prompt: Tokens, words: Tokens) -> LessonOutcome:
    """Take one supervised step on `words`, a text that the owner wrote; all its tokens count."""
    return _learn(day, prompt, [words], [torch.ones(len(words))], HUMAN_RATE)


def learn_from_correction(day: DayCopy, prompt: Tokens, answer: Tokens, correction: Tokens) -> LessonOutcome:
    """Take one step towards preferring the owner's correction to the answer, from the first differing token on.

    The step is min(1, 2σ(−h)) of a full one. h (nats) is the log-probability of the correction minus that of the
    answer, and minus the same difference for the champion. Like the gradient of −log σ(h), the step shrinks as h grows.
    """
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(answer, correction, strict=False)))
    weights = [-_from(same, len(answer)), _from(same, len(correction))]
    every = [-torch.ones(len(answer)), torch.ones(len(correction))]
    return _learn(day, prompt, [answer, correction], weights, RATE, literal=every)


def learn_from_selection(day: DayCopy, prompt: Tokens, answers: Sequence[Tokens], chosen: int) -> LessonOutcome:
    """Take one gradient-bandit step towards preferring the chosen answer to the others shown.

    The preference for answer i is H_i = log π/π_champion, and p = softmax(H). The gradient of log p_chosen with respect
    to H is 1 − p_chosen for the chosen answer and −p_i for each other one (Sutton and Barto 2018, equation 2.12). The
    credit is this gradient divided by 1 − p_chosen; the literal method gives each other answer −1 instead. With n
    answers, the step is min(1, (1 − p_chosen) / (1 − 1/n)) of a full one. The outcome's `guessed` says whether the copy
    already preferred the chosen answer. Raises ValueError for fewer than two answers.
    """
    if len(answers) < 2:
        raise ValueError("a pick needs two different answers or more: correct the answer instead")
    literal = day.config.method == "literal"
    guessed: bool | None = None

    def credit(now: Sequence[Tensor], champion: Sequence[Tensor]) -> tuple[list[Tensor], float]:
        nonlocal guessed
        preferences = torch.stack([(a - b).sum() for a, b in zip(now, champion, strict=True)])
        if float(preferences.max() - preferences.min()) >= ALIKE:
            guessed = int(preferences.argmax()) == chosen
        shares = preferences.softmax(dim=0)
        left = max(1.0 - float(shares[chosen]), 1e-6)
        others = [-1.0 if literal else -float(share) / left for share in shares]
        factors = [1.0 if number == chosen else other for number, other in enumerate(others)]
        start = 1.0 - 1.0 / len(answers)
        return [torch.full((len(a),), f) for a, f in zip(answers, factors, strict=True)], min(1.0, left / start)

    outcome = day.literal_step(prompt, answers, credit, RATE) if literal else day.step(prompt, answers, credit)
    return replace(outcome, guessed=guessed)


def learn_with_traces(day: DayCopy, prompt: Tokens, answer: Tokens, rewards: Sequence[float]) -> LessonOutcome:
    """Take one step on per-token rewards [T]. A reward also credits every earlier token, decayed by (γλ)^distance.

    The credit is an advantage computed with state values of 0, because the owner's praise and blame are themselves
    advantages (COACH, MacGlashan et al. 2017).
    """
    weights = gae(rewards, [0.0] * (len(rewards) + 1), GAMMA, LAMBDA)
    return _learn(day, prompt, [answer], [weights.float()], RATE)


def learn_from_conversation(
    day: DayCopy, tokens: Tokens, turns: Sequence[tuple[int, int]], values: Sequence[float]
) -> LessonOutcome:
    """Take one step on ratings (`values`, from −1 for bad to 1 for good) of the assistant's turns in a conversation.

    `tokens`: the whole conversation. `turns`: each rated turn's token span (start, end); other tokens get no credit.
    With `traces`, credit fades backwards within each turn. The strongest rating determines the step's size. Raises
    ValueError if all ratings are 0.
    """
    first, size = turns[0][0], max(map(abs, values))
    if size == 0:
        raise ValueError("ratings of 0 say nothing")
    weights = torch.zeros(len(tokens) - first)
    for (start, end), value in zip(turns, values, strict=True):
        weights[start - first : end - first] = value / size * _fading(day, end - start)
    return _learn(day, tokens[:first], [tokens[first:]], [weights], RATE, size=size)


def praise(day: DayCopy, prompt: Tokens, answer: Tokens, size: float = 1.0) -> LessonOutcome:
    """Take one step that makes the answer more likely. `size`: the step's size as a share of a full step."""
    return _learn(day, prompt, [answer], [_fading(day, len(answer))], RATE, size=size)


def blame(day: DayCopy, prompt: Tokens, *answers: Tokens, size: float = 1.0) -> LessonOutcome:
    """Take one step that makes the answers less likely, with equal credit for each of them. `size`: as in `praise`."""
    weights = [-_fading(day, len(answer)) / len(answers) for answer in answers]
    return _learn(day, prompt, answers, weights, RATE, size=size)


def wrong_from(day: DayCopy, prompt: Tokens, answer: Tokens, token: int) -> LessonOutcome:
    """Take one step that makes the answer less likely from the index `token` on; earlier tokens get no credit.

    With `traces`, the token at that index instead gets a reward of −1, which fades backwards over the earlier tokens.
    Raises ValueError if `token` is not an index into the answer.
    """
    if not 0 <= token < len(answer):
        raise ValueError(f"the answer has {len(answer)} tokens, and none is number {token}")
    if day.config.traces:
        return learn_with_traces(day, prompt, answer, [-1.0 if at == token else 0.0 for at in range(len(answer))])
    return _learn(day, prompt, [answer], [-_from(token, len(answer))], RATE)


def _learn(
    day: DayCopy,
    prompt: Tokens,
    answers: Sequence[Tokens],
    weights: Sequence[Tensor],
    rate: float,
    *,
    literal: Sequence[Tensor] | None = None,
    size: float = 1.0,
) -> LessonOutcome:
    """Take a step of this `size` with fixed token weights, or a smaller one if the copy has already moved that way."""
    if day.config.method == "literal":
        return day.literal_step(prompt, answers, lambda now, champion: (literal or weights, 1.0), rate * size)

    def credit(now: Sequence[Tensor], champion: Sequence[Tensor]) -> tuple[Sequence[Tensor], float]:
        come = sum(float((w.to(a) * (a - b)).sum()) for w, a, b in zip(weights, now, champion, strict=True))
        return weights, size * min(1.0, 2.0 / (1.0 + math.exp(min(come, 700.0))))

    return day.step(prompt, answers, credit)


def _fading(day: DayCopy, length: int) -> Tensor:
    """Return the token weights for praise: all 1 or, with `traces`, those of a trace after the last token."""
    if not day.config.traces:
        return torch.ones(length)
    return trace_weights(length, GAMMA, LAMBDA).float()


def _from(first: int, length: int) -> Tensor:
    return (torch.arange(length) >= first).float()
