# what: an accumulator that is not cleared, so that the second test fails
# allowed: wrong
# test: assert solve([1, 2]) == 3
# test: assert solve([1, 2]) == 3

total = []


def solve(values):
    total.extend(values)
    return sum(total)
