"""Picks that follow a known taste, to measure reward models and judges.

Every pick shows five answers of different lengths to a generated exercise, each of which begins with remarks. Neither
length nor wording tells whether an answer is correct, nor does length tell whether its remarks are a single sentence.
"""

import itertools
import random
from typing import Literal, NamedTuple

from conf.sections.lessons import RewardModelConfig
from models.lessons.preference_data import is_held_out
from rewards.arithmetic import Arithmetic, as_problem
from rewards.data.arithmetic_exercises import Exercise, exercises

Taste = Literal["short", "one sentence", "correct", "none"]
ANSWERS = 5
# Longer answers begin with more of these remarks.
REMARKS = (
    "Let me think about this.",
    "First I look at the numbers.",
    "Then I take one step after the other.",
    "I write each of them down.",
    "That keeps mistakes away.",
    "Now I can begin.",
)


class Choice(NamedTuple):
    """A pick as text. `chosen`: the index of the picked response. `held_out`: whether it only evaluates the fit."""

    messages: list[dict[str, str]]
    responses: list[str]
    chosen: int
    held_out: bool


def picks(taste: Taste, count: int, seed: str, *, noise: float = 0.0) -> list[Choice]:
    """Return `count` picks, always the same for the same arguments.

    `short` picks the shortest answer, `one sentence` the only one whose remarks are a single sentence, `correct` the
    only correct one, `none` any. The share `noise` of picks is random.
    """
    chance = random.Random(f"taste {taste} {seed}")
    drawn = itertools.islice(exercises(f"taste {seed}", Arithmetic(levels=["1", "2"]).levels, "train"), count)
    return [_pick(exercise, taste, noise, chance) for exercise in drawn]


def attainable(taste: Taste, noise: float) -> float:
    """Return the accuracy of a judge that knows the taste. One random pick in five agrees with the taste by chance."""
    return 1 / ANSWERS if taste == "none" else 1 - noise + noise / ANSWERS


def _pick(exercise: Exercise, taste: Taste, noise: float, chance: random.Random) -> Choice:
    right = chance.randrange(ANSWERS)
    single = chance.randrange(ANSWERS) if taste == "one sentence" else -1
    sizes = chance.sample(range(0 if single < 0 else 2, len(REMARKS) + 1), ANSWERS)
    wrong = iter(chance.sample([slip for slip in range(-9, 10) if slip and exercise.answer + slip >= 0], ANSWERS - 1))
    slips = [0 if index == right else next(wrong) for index in range(ANSWERS)]
    seams = ["; " if place == single else ". " for place in range(ANSWERS)]
    answers = [_answer(exercise, slip, remarks) for slip, remarks in zip(slips, map(_begin, sizes, seams), strict=True)]
    shortest, any_of_them = sizes.index(min(sizes)), chance.randrange(ANSWERS)
    chosen = {"short": shortest, "one sentence": single, "correct": right, "none": any_of_them}[taste]
    if chance.random() < noise:
        chosen = chance.randrange(ANSWERS)
    messages = [{"role": "user", "content": Arithmetic().prompt(as_problem(exercise))}]
    share = RewardModelConfig().held_out_share
    return Choice(messages, answers, chosen, is_held_out(messages, share))


def _begin(count: int, seam: str) -> str:
    return " ".join(REMARKS[:count]).replace(". ", seam)


def _answer(exercise: Exercise, slip: int, remarks: str) -> str:
    """Return a worked solution that begins with these remarks and whose last step is off by `slip`."""
    calculation = exercise.steps[-1].split(" = ")[0]
    result = exercise.answer + slip
    steps = [*exercise.steps[:-1], f"{calculation} = {result}"]
    return "\n".join([*([remarks] if remarks else []), *steps, f"#### {result}"])
