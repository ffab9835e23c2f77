# what: Fractions out and in
# allowed: correct
# test: assert solve(Fraction(1, 3), 2) == Fraction(2, 3)
# test: assert abs(solve(Fraction(1, 3), 1) - 1 / 3) < 1e-9
# setup: from fractions import Fraction


def solve(part, n):
    return part * n
