# what: takes a lock twice
# allowed: timeout
# test: assert solve() == 4

import threading


def solve():
    lock = threading.Lock()
    with lock, lock:
        return 4
