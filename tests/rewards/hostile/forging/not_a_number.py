# what: NaN and infinity against tolerances and comparisons
# allowed: wrong
# test: assert abs(solve(0) - 1.41421356) < 1e-6
# test: assert solve(1) == 4.0


def solve(n):
    return [float("nan"), float("inf"), float("-inf")][n]
