# what: sorts its argument in place and returns it
# allowed: correct
# test: assert solve([3, 1, 2]) == [1, 2, 3]


def solve(values):
    values.sort()
    values.append(values.pop())
    return values
