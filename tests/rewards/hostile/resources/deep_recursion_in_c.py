# what: the same through C: a repr of lists nested a million deep
# allowed: crashed out_of_memory timeout
# test: assert solve() == 4

import sys


def solve():
    sys.setrecursionlimit(1 << 30)
    value = []
    for _ in range(1_000_000):
        value = [value]
    return len(repr(value))
