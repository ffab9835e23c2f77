# what: becomes another user
# allowed: forbidden crashed
# test: assert solve() is True

import os


def solve():
    other = 12345 if os.getuid() == 0 else 0
    os.setresuid(other, other, other)
    return os.getuid() == other
