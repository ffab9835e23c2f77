# what: truncates a file of the standard library to the length that it has
# allowed: forbidden crashed
# test: assert solve() is None

import json
import os


def solve():
    return os.truncate(json.__file__, os.stat(json.__file__).st_size)
