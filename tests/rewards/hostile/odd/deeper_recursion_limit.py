# what: lifts the recursion limit for a recursion to a depth of 5,000
# allowed: correct
# test: assert solve(5_000) == 5_000

import sys

sys.setrecursionlimit(10_000)


def solve(n):
    return 0 if n == 0 else 1 + solve(n - 1)
