# what: runs a command by system()
# allowed: forbidden wrong crashed
# test: assert solve() == 0

import os


def solve():
    return os.system("echo 4")
