# what: sleeps for an hour
# allowed: timeout
# test: assert solve() == 4

import time


def solve():
    time.sleep(3600)
