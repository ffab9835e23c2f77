# what: the right elements in another order
# allowed: wrong
# test: assert solve([3, 1, 2]) == [1, 2, 3]


def solve(values):
    return list(dict.fromkeys(values))
