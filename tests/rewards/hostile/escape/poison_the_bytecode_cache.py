# what: opens the compiled standard library for writing (writes nothing)
# allowed: forbidden crashed
# test: assert solve() > 0

import json
import os


def solve():
    return os.open(json.__cached__, os.O_RDWR)
