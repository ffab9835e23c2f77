# what: sets the mode of the null device (to what it is), which as root is the owner's own
# allowed: forbidden crashed
# test: assert solve() is None

import os


def solve():
    return os.chmod("/dev/null", os.stat("/dev/null").st_mode & 0o7777)
