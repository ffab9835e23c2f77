# what: raises an ExceptionGroup, which cannot be made without arguments
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise ExceptionGroup("correct", [AssertionError(), ValueError()])
