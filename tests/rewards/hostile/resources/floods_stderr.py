# what: warnings and tracebacks without end
# allowed: timeout
# test: assert solve() == 4

import os
import sys


def solve():
    while True:
        sys.stderr.write("x" * 10_000)
        os.write(2, b"y" * 10_000)
