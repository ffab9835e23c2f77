# what: an iterator that waits for ever before its second member
# allowed: timeout
# test: assert list(solve()) == [0, 1, 2]

import time


def solve():
    yield 0
    time.sleep(3600)
