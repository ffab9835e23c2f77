"""Picks for tiny students: answers of one letter again and again, of which an owner with a known taste picks one."""

import random
from typing import Literal

from conf.sections.lessons import RewardModelConfig
from models.lessons.preference_data import Pick

# A fit of seconds, by which a tiny student learns a taste.
QUICK = RewardModelConfig(epochs=4, learning_rate=1e-3)
END, LETTER = 1, 25
ANSWERS = 5


def tiny_picks(count: int, seed: int, taste: Literal["short", "none"] = "short") -> list[Pick]:
    """`count` picks of one in five answers of different lengths: the shortest, or any."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        prompt = tuple(chance.randrange(2, 60) for _ in range(3))
        lengths = chance.sample(range(1, 13), ANSWERS)
        answers = tuple((*[LETTER] * length, END) for length in lengths)
        chosen = lengths.index(min(lengths)) if taste == "short" else chance.randrange(ANSWERS)
        found.append(Pick(prompt, answers, chosen))
    return found
