# what: opens the null device for as long as it can, at most 100,000 times
# allowed: wrong crashed forbidden
# test: assert solve() == 100_000
# needs: limits

import os


def solve():
    count = 0
    try:
        while count < 100_000:
            os.dup(0)
            count += 1
    except OSError:
        pass
    return count
