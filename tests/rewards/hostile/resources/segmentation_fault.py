# what: reads address 0
# allowed: crashed forbidden
# test: assert solve() == 4

import ctypes


def solve():
    return ctypes.string_at(0)
