# what: full pipes of 1 MB each, which no limit on addresses counts, at most 1,000
# allowed: forbidden crashed wrong
# test: assert solve() > 200

import fcntl
import os


def solve():
    size = 0
    try:
        for _ in range(1_000):
            read, write = os.pipe()
            fcntl.fcntl(write, 1031, 1 << 20)
            os.set_blocking(write, False)
            size += os.write(write, bytes(1 << 20))
    except OSError:
        pass
    return size >> 20
