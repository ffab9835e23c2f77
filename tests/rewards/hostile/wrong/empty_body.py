# what: returns nothing at all
# allowed: wrong
# test: assert solve(3) == 6
# test: assert solve(0) == 0


def solve(n):
    pass
