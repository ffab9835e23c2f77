# what: a generator that raises in the middle, where the judge drains it
# allowed: crashed wrong
# test: assert list(solve(3)) == [1, 2, 3]


def solve(n):
    yield 1
    raise AssertionError("the judge's own?")
