# what: right to two digits, where six are asked
# allowed: wrong
# test: assert abs(solve(2) - 1.41421356) < 1e-6


def solve(n):
    return 1.41
