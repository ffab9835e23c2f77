# what: waits for a byte that never comes
# allowed: timeout
# test: assert solve() == 4

import os


def solve():
    read, write = os.pipe()
    return os.read(read, 1)
