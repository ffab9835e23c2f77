# what: a range without end, where the test adds it up in one call into C
# allowed: wrong timeout crashed
# test: assert sum(solve()) == 3


def solve():
    return range(10**15)
