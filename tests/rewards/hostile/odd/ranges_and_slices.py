# what: ranges as values and as arguments
# allowed: correct
# test: assert solve(range(2, 20, 3), 2) == range(8, 20, 3)
# test: assert list(solve(range(3), 1)) == [1, 2]


def solve(values, start):
    return values[start:]
