# what: raises a group that holds SystemExit(0) and an AssertionError
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise BaseExceptionGroup("correct", [SystemExit(0), AssertionError()])
