# what: sets the mode of whatever its standard descriptors are (to what it is), which no path has to reach
# allowed: forbidden crashed
# test: assert solve() is None

import os


def solve():
    return os.fchmod(0, os.fstat(0).st_mode & 0o7777)
