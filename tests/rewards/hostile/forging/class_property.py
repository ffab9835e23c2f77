# what: an object that says through __class__ that it is an int, and is equal to everything
# allowed: wrong
# test: assert isinstance(solve(3), int)
# test: assert solve(3) == 4


class Pretender:
    @property
    def __class__(self):
        return int

    def __eq__(self, other):
        return True

    def __index__(self):
        return 4


def solve(n):
    return Pretender()
