# what: forgets to drop duplicates
# allowed: wrong
# test: assert solve([1, 1, 2]) == [1, 2]


def solve(values):
    return sorted(values)
