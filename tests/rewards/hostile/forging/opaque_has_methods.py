# what: the same where the test asks for a method, and for a length that is never taken
# allowed: wrong
# test: assert hasattr(solve(3), "__iter__") and hasattr(solve(3), "__len__")

import threading


def solve(n):
    return threading.Lock()
