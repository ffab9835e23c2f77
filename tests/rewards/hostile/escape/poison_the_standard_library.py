# what: opens a module of the standard library, and its cache, for writing (writes nothing)
# allowed: forbidden crashed
# test: assert solve() > 0

import json
import os


def solve():
    return os.open(json.__file__, os.O_WRONLY)
