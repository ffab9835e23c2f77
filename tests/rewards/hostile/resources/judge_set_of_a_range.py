# what: a range of a thousand million members, where the test makes a set of it
# allowed: wrong crashed timeout out_of_memory
# test: assert set(solve()) == {0, 1, 2}
# needs: limits


def solve():
    return range(10**9)
