"""Picks of an owner whose taste is known, to see what a reward model makes of them.

Every pick shows five answers to a generated exercise, of five different lengths; how long an answer is says nothing
about whether it is right, and how it is written neither.
"""

import itertools
import random
from typing import Literal

from rewards.arithmetic import Arithmetic, as_problem
from rewards.data.arithmetic_exercises import Exercise, exercises
from tasks.reward_model.preferences import Choice

Taste = Literal["short", "correct", "none"]
ANSWERS = 5
# A longer answer begins with more of them.
REMARKS = (
    "Let me think about this.",
    "First I look at the numbers.",
    "Then I take one step after the other.",
    "I write each of them down.",
    "That keeps mistakes away.",
    "Now I can begin.",
)


def picks(taste: Taste, count: int, seed: str, *, noise: float = 0.0) -> list[Choice]:
    """`count` picks; the same arguments give the same ones.

    `short`: the shortest answer is picked. `correct`: the only right one of five. `none`: any. A share of `noise` is
    picked at random among all five instead.
    """
    chance = random.Random(f"taste {taste} {seed}")
    drawn = itertools.islice(exercises(f"taste {seed}", Arithmetic(levels=["1", "2"]).levels, "train"), count)
    return [_pick(exercise, taste, noise, chance) for exercise in drawn]


def attainable(taste: Taste, noise: float) -> float:
    """The accuracy of who knows the taste: the noise hits what it would have picked anyway one time in five."""
    return 1 / ANSWERS if taste == "none" else 1 - noise + noise / ANSWERS


def _pick(exercise: Exercise, taste: Taste, noise: float, chance: random.Random) -> Choice:
    right = chance.randrange(ANSWERS)
    sizes = chance.sample(range(len(REMARKS) + 1), ANSWERS)
    wrong = iter(chance.sample([slip for slip in range(-9, 10) if slip and exercise.answer + slip >= 0], ANSWERS - 1))
    slips = [0 if place == right else next(wrong) for place in range(ANSWERS)]
    answers = [_answer(exercise, slip, size) for slip, size in zip(slips, sizes, strict=True)]
    chosen = {"short": sizes.index(min(sizes)), "correct": right, "none": chance.randrange(ANSWERS)}[taste]
    if chance.random() < noise:
        chosen = chance.randrange(ANSWERS)
    messages = [{"role": "user", "content": Arithmetic().prompt(as_problem(exercise))}]
    return Choice(messages, answers, chosen, night=None)


def _answer(exercise: Exercise, slip: int, remarks: int) -> str:
    """A worked solution behind so many remarks; its last step is off by `slip`."""
    calculation = exercise.steps[-1].split(" = ")[0]
    found = exercise.answer + slip
    steps = [*exercise.steps[:-1], f"{calculation} = {found}"]
    return "\n".join([*([" ".join(REMARKS[:remarks])] if remarks else []), *steps, f"#### {found}"])
