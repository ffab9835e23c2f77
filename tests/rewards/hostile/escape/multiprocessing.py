# what: counts in processes of a pool
# allowed: forbidden crashed
# test: assert solve() == [1, 2, 3]

import multiprocessing


def solve():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, [-1, -2, -3])
