# what: raises what the tests expect to be raised
# allowed: correct
# test: assert raises(ValueError, -1) and raises(KeyError, 0) and raises(OSError, 1)
# test: assert solve(3) == 4
# setup: def raises(kind, n):
# setup:     try:
# setup:         solve(n)
# setup:     except kind:
# setup:         return True
# setup:     return False


class Negative(ValueError):
    pass


def solve(n):
    if n < 0:
        raise Negative(n)
    if n == 0:
        return {}[n]
    if n == 1:
        open("/nowhere/at/all")
    return n + 1
