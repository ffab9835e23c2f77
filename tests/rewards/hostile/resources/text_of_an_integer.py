# what: the decimal text of a number of ten million digits
# allowed: timeout crashed
# test: assert solve() == 4

import sys


def solve():
    sys.set_int_max_str_digits(0)
    return str(1 << 40_000_000)
