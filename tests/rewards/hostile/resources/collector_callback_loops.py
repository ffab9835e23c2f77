# what: loops in a callback of the garbage collector
# allowed: timeout
# test: assert solve() == 4

import gc


def callback(phase, information):
    while True:
        pass


def solve():
    gc.callbacks.append(callback)
    gc.collect()
    return 4
