# what: raises its own priority above all others
# allowed: forbidden crashed
# test: assert solve() == -10

import os


def solve():
    return os.nice(-10)
