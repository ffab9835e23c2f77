"""The truths of all real MATH problems: right against themselves, wrong against others and with a digit changed."""

import random
import re

import pytest

from rewards.competition_math import CompetitionMath, true_answer
from rewards.symbolic.boxed import last_boxed
from rewards.symbolic.equivalence import compare
from rewards.symbolic.limits import refusal
from rewards.verifier import Attempt, Problem, Split
from tests.rewards.datasets import needs_data

SPLITS: tuple[Split, Split] = ("train", "test")


def real_problems() -> list[Problem]:
    return [problem for split in SPLITS for problem in CompetitionMath().problems(split)]


@needs_data
@pytest.mark.parametrize("count", [1500, pytest.param(12498, marks=pytest.mark.full, id="all")])
def test_real_truths_are_correct_against_themselves(count: int) -> None:
    chosen = random.Random("truths").sample(real_problems(), count)
    scores = CompetitionMath().score([Attempt(problem, problem.truth) for problem in chosen])
    assert {score.verdict for score in scores} == {"correct"}


@needs_data
@pytest.mark.slow
def test_real_truths_of_other_problems_are_hardly_ever_right() -> None:
    chosen = random.Random("others").sample(real_problems(), 250)
    others = [*chosen[1:], chosen[0]]
    pairs = [
        (problem, other)
        for problem, other in zip(chosen, others, strict=True)
        if true_answer(problem.truth) != true_answer(other.truth)
    ]
    scores = CompetitionMath().score([Attempt(problem, other.truth) for problem, other in pairs])
    assert [pair for pair, score in zip(pairs, scores, strict=True) if score.verdict != "wrong"] == []


@needs_data
@pytest.mark.slow
def test_real_truths_with_a_digit_changed_are_wrong() -> None:
    chance = random.Random("digits")
    attempts = []
    for problem in chance.sample(real_problems(), 400):
        truth = last_boxed(problem.truth) or ""
        if places := [match.start() for match in re.finditer("[0-9]", truth)]:
            place = chance.choice(places)
            digit = chance.choice([digit for digit in "123456789" if digit != truth[place]])
            attempts.append(Attempt(problem, rf"\boxed{{{truth[:place]}{digit}{truth[place + 1 :]}}}"))
    assert len(attempts) > 250
    scores = CompetitionMath().score(attempts)
    assert [a.completion for a, score in zip(attempts, scores, strict=True) if score.verdict != "wrong"] == []


@needs_data
@pytest.mark.full
def test_no_real_truth_hangs_or_breaks_math_verify() -> None:
    """Every truth that is an expression compared with its own by symbols, as if its text were not the same."""
    truths = {answer.plain for problem in real_problems() if (answer := true_answer(problem.truth)) and not answer.text}
    pairs = [(truth, truth) for truth in sorted(truths) if refusal(truth) is None]
    outcomes = compare(pairs)
    assert set(outcomes) <= {"equal", "different"}
    assert outcomes.count("equal") >= 0.98 * len(pairs)
