# what: returns functions, modules, types and frames instead of values
# allowed: wrong
# test: assert solve(0) == 4
# test: assert solve(1) == 4

import sys


def solve(n):
    return [eval, sys, type, sys._getframe(), solve, Ellipsis][n]
