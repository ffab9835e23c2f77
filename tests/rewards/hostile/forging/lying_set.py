# what: a set subclass that is equal to, subset of and superset of everything
# allowed: wrong
# test: assert solve(3) == {1, 2, 3}
# test: assert {1, 2, 3} <= solve(3)
# test: assert 3 in solve(3)


class Lying(set):
    def __eq__(self, other):
        return True

    def __contains__(self, item):
        return True

    __le__ = __ge__ = __lt__ = __gt__ = issubset = issuperset = __eq__

    def __hash__(self):
        return 0


def solve(n):
    return Lying({9})
