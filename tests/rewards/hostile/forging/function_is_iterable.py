# what: a function, where the test asks whether it is iterable
# allowed: wrong
# test: assert isinstance(solve(3), Iterable)
# setup: from collections.abc import Iterable


def solve(n):
    return solve
