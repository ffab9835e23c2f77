# what: makes a symbolic link to the root and goes through it
# allowed: forbidden crashed
# test: assert len(solve()) > 0

import os


def solve():
    os.symlink("/", "nightschool-hostile-link")
    return os.listdir("nightschool-hostile-link/etc")
