# what: returns a function that would give the answer
# allowed: wrong
# test: assert solve(3) == 6


def solve(n):
    return lambda: sum(range(n + 1))
