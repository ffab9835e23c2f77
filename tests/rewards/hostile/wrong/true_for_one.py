# what: a truth value, where `is True` is asked
# allowed: wrong
# test: assert solve(3) is True


def solve(n):
    return 1
