# what: named tuples, which are equal to plain ones
# allowed: correct
# test: assert solve(3, 4) == (3, 4)
# test: assert solve(3, 4)[0] == 3

from collections import namedtuple

Point = namedtuple("Point", "x y")


def solve(x, y):
    return Point(x, y)
