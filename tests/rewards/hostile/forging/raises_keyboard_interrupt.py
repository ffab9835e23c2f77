# what: raises KeyboardInterrupt, which could end the whole run
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise KeyboardInterrupt
