# what: an iterator without end, given back for a list
# allowed: wrong crashed timeout
# test: assert list(solve()) == [0, 1, 2]

import itertools


def solve():
    return itertools.count()
