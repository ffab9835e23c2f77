# what: the right elements in a tuple, where a list is asked
# allowed: wrong
# test: assert solve([2, 1]) == [1, 2]


def solve(values):
    return tuple(sorted(values))
