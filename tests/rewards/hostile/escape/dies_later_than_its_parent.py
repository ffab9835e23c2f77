# what: takes back that it ends with its parent, and leaves the session
# allowed: wrong forbidden
# test: assert solve() == "free"

import ctypes
import os


def solve():
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    try:
        os.setsid()
    except PermissionError:
        pass
    return "tried"
