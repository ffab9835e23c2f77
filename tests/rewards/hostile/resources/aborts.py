# what: ends with abort(), which would leave a core
# allowed: crashed forbidden
# test: assert solve() == 4

import os


def solve():
    os.abort()
