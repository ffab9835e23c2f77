# what: waits several times, together less than its limit
# allowed: correct
# test: assert solve(3) == 4
# seconds: 2

import time


def solve(n):
    for _ in range(10):
        time.sleep(0.02)
    return n + 1
