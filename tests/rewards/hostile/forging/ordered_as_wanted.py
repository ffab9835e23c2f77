# what: an object that is smaller and larger than everything
# allowed: wrong
# test: assert solve(3) < 10
# test: assert solve(3) > 3
# test: assert 3 <= solve(3) <= 4


class Ordered:
    def __lt__(self, other):
        return True

    __gt__ = __le__ = __ge__ = __lt__


def solve(n):
    return Ordered()
