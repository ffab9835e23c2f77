# what: returns an iterator, where a list is compared
# allowed: wrong
# test: assert solve([1, 2]) == [2, 4]


def solve(values):
    return map(lambda x: 2 * x, values)
