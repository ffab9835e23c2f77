# what: returns what cannot be compared to a test that takes any exception for the expected one
# allowed: wrong crashed
# test: assert caught()
# setup: def caught():
# setup:     try:
# setup:         return solve(3) == 4
# setup:     except Exception:
# setup:         return True

import threading


def solve(n):
    return threading.Lock()
