# what: a Decimal subclass that is equal to everything
# allowed: wrong
# test: assert solve(3) == Decimal("1.5")
# setup: from decimal import Decimal

import decimal


class Lying(decimal.Decimal):
    def __eq__(self, other):
        return True

    def __str__(self):
        return "1.5"

    def as_tuple(self):
        return decimal.Decimal("1.5").as_tuple()


def solve(n):
    return Lying("2.5")
