# what: lifts the recursion limit and recurses until the stack ends
# allowed: crashed out_of_memory timeout
# test: assert solve(0) == 4
# needs: limits

import sys

sys.setrecursionlimit(1 << 30)


def solve(n):
    return solve(n + 1) + 1
