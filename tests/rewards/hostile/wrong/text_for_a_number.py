# what: the right number, as a text
# allowed: wrong
# test: assert solve(3) == 6


def solve(n):
    return str(sum(range(n + 1)))
