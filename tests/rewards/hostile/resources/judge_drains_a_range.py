# what: a range without end, where the test makes a list of it
# allowed: wrong crashed timeout out_of_memory
# test: assert list(solve()) == [0, 1, 2]


def solve():
    return range(10**15)
