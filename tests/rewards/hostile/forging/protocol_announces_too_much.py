# what: announces a reply of four thousand million bytes
# allowed: wrong crashed timeout
# test: assert solve(3) == 4
# seconds: 0.5

import os


def solve(n):
    os.write(3, b"\xff\xff\xff\xff")
    return 4
