# what: duplicates its descriptors over each other, so that requests and replies run in a circle
# allowed: wrong crashed timeout
# test: assert solve(3) == 4
# seconds: 1

import os


def solve(n):
    for low in range(3, 16):
        for high in range(low + 1, 16):
            try:
                os.dup2(low, high)
            except OSError:
                pass
    return 3
