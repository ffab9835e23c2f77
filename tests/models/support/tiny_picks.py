"""Picks for tiny students: answers of one letter again and again, of which an owner with a known taste picks one."""

import random

from models.lessons.preference_data import Pick

END, LETTER = 1, 25
ANSWERS = 5


def tiny_picks(count: int, seed: int) -> list[Pick]:
    """`count` picks of the shortest of five answers of different lengths."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        prompt = tuple(chance.randrange(2, 60) for _ in range(3))
        lengths = chance.sample(range(1, 13), ANSWERS)
        answers = tuple((*[LETTER] * length, END) for length in lengths)
        found.append(Pick(prompt, answers, lengths.index(min(lengths))))
    return found
