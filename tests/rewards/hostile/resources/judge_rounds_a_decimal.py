# what: a Decimal with an exponent that makes the test's conversion to int endless
# allowed: wrong timeout crashed out_of_memory
# test: assert int(solve()) == 4

from decimal import Decimal


def solve():
    return Decimal("1E+999999999")
