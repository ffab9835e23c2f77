# what: a number that makes the test itself compute a power for hours
# allowed: wrong crashed timeout out_of_memory
# test: assert 3 ** solve() == 9


def solve():
    return 10**10
