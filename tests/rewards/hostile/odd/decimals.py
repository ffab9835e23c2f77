# what: Decimals out and in
# allowed: correct
# test: assert solve(Decimal("1.10"), 3) == Decimal("3.30")
# test: assert str(solve(Decimal("1.10"), 3)) == "3.30"
# setup: from decimal import Decimal

import decimal


def solve(price, n):
    decimal.getcontext().prec = 40
    return price * n
