# what: an empty object of its own class, where the test asks whether it can be called
# allowed: wrong
# test: assert callable(solve(3))


class Nothing:
    pass


def solve(n):
    return Nothing()
