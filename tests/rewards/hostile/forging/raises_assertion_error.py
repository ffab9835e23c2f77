# what: raises the exception that a failed test raises: it is the candidate's own failure
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise AssertionError
