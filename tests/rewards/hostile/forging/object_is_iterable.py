# what: an empty object of its own class, where the test asks whether it is iterable and has a length
# allowed: wrong
# test: assert isinstance(solve(3), Iterable) and isinstance(solve(3), Sized)
# setup: from collections.abc import Iterable, Sized


class Nothing:
    pass


def solve(n):
    return Nothing()
