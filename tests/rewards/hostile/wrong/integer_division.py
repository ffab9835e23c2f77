# what: cuts the fraction off
# allowed: wrong
# test: assert solve(7, 2) == 3.5


def solve(a, b):
    return a // b
