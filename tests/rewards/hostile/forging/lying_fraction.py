# what: a Fraction subclass that is equal to all and whose numerator changes when it is read
# allowed: wrong
# test: assert solve(3) == Fraction(4, 3)
# setup: from fractions import Fraction

from fractions import Fraction


class Lying(Fraction):
    def __eq__(self, other):
        return True

    def __sub__(self, other):
        return 0

    __rsub__ = __sub__


def solve(n):
    return Lying(1, 2)
