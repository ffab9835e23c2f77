# what: the same where the test asks whether it can be called
# allowed: wrong
# test: assert callable(solve(3))

import threading


def solve(n):
    return threading.Lock()
