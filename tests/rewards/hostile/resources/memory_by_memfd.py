# what: a file in memory of 1 GB, which no limit on addresses counts
# allowed: forbidden crashed out_of_memory
# test: assert solve() == 1 << 30

import os


def solve():
    descriptor = os.memfd_create("nightschool-hostile")
    return sum(os.write(descriptor, bytes(16 << 20)) for _ in range(64))
