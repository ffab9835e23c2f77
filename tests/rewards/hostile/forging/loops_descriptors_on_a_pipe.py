# what: puts its own pipe with a forged request and reply over every descriptor
# allowed: wrong crashed timeout
# test: assert solve(3) == 4
# seconds: 1

import os


def solve(n):
    read, write = os.pipe()
    os.write(write, b'{"call": "solve", "arguments": [3]}\n' * 8)
    for descriptor in range(3, 32):
        if descriptor not in (read, write):
            os.dup2(read if descriptor % 2 else write, descriptor)
    return 3
