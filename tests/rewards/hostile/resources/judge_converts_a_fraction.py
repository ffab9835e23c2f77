# what: a Fraction of two numbers of a million digits, which are not in lowest terms
# allowed: wrong timeout crashed
# test: assert solve() + 1 == 4

from fractions import Fraction


def solve():
    value = Fraction(1, 2)
    value._numerator, value._denominator = (1 << 3_000_000) + 1, (1 << 3_000_001) - 1
    return value
