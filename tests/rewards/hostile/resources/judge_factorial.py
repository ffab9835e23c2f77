# what: a number whose factorial the test computes
# allowed: wrong timeout crashed out_of_memory
# test: assert math.factorial(solve()) == 24


def solve():
    return 10**9
