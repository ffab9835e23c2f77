# what: works a little and sleeps a little, for an hour
# allowed: timeout
# test: assert solve() == 4

import time


def solve():
    for _ in range(3_600_000):
        time.sleep(0.001)
