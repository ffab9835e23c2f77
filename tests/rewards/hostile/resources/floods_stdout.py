# what: 400 MB to standard output
# allowed: wrong
# test: assert solve() == 4
# seconds: 2

import sys


def solve():
    for _ in range(400):
        sys.stdout.write("x" * 1_000_000)
    return 3
