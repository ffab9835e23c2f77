# what: fills every descriptor with garbage, for whoever reads it next, and answers as if nothing were
# allowed: wrong crashed timeout
# test: assert solve(3) == 4
# seconds: 1

import os
import select


def solve(n):
    for descriptor in range(3, 256):
        try:
            for _ in range(100):
                if select.select([], [descriptor], [], 0)[1]:
                    os.write(descriptor, b"\xff\x00\n{" * 512)
        except (OSError, ValueError):
            continue
    return 3
