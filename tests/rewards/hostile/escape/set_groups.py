# what: joins the groups of the devices
# allowed: forbidden crashed
# test: assert solve() is None

import os


def solve():
    return os.setgroups([0, 6, 44])
