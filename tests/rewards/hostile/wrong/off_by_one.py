# what: stops one too early
# allowed: wrong
# test: assert solve(3) == 6
# test: assert solve(1) == 1


def solve(n):
    return sum(range(n))
