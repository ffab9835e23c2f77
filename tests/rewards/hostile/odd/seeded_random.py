# what: random numbers: the same at every run where they are seeded by the program
# allowed: correct
# test: assert solve(7) == solve(7)
# test: assert sorted(shuffled(5)) == [0, 1, 2, 3, 4]

import random


def solve(seed):
    random.seed(seed)
    return [random.random() for _ in range(3)]


def shuffled(n):
    values = list(range(n))
    random.shuffle(values)
    return values
