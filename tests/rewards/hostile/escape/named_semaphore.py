# what: makes a lock that several processes share
# allowed: forbidden crashed
# test: assert solve() is True

import multiprocessing


def solve():
    return multiprocessing.get_context("fork").Lock().acquire()
