"""Picks for tiny students: random letters of random lengths, of which an owner with a known taste picks one."""

import random
from typing import Literal

from models.picks import Pick

END = 1
ANSWERS = 5


def tiny_picks(count: int, seed: int, taste: Literal["short", "none"] = "short") -> list[Pick]:
    """`count` picks of one in five answers of different lengths: the shortest, or any."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        prompt = tuple(chance.randrange(2, 60) for _ in range(chance.randint(2, 5)))
        lengths = chance.sample(range(1, 13), ANSWERS)
        answers = tuple((*(chance.randrange(2, 60) for _ in range(length)), END) for length in lengths)
        chosen = lengths.index(min(lengths)) if taste == "short" else chance.randrange(ANSWERS)
        found.append(Pick(prompt, answers, chosen))
    return found
