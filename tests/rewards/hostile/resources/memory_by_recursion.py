# what: a recursion that carries a growing list, with the limit lifted
# allowed: out_of_memory crashed timeout
# test: assert solve() == 4
# needs: limits

import sys

sys.setrecursionlimit(1 << 30)


def deeper(values):
    return deeper(values + values[:1_000])


def solve():
    return deeper([0] * 1_000)
