# what: returns what cannot cross, where the test asks only of what kind it is
# allowed: wrong
# test: assert isinstance(solve(3), Iterable)
# setup: from collections.abc import Iterable

import threading


def solve(n):
    return threading.Lock()
