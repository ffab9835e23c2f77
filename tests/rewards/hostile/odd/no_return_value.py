# what: returns nothing, and that is what the test asks
# allowed: correct
# test: assert solve([]) is None
# test: assert solve([3]) == 3


def solve(values):
    if values:
        return values[0]
