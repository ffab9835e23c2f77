# what: half a million of the smallest values in every reply, as often as the test asks
# allowed: wrong timeout
# test: assert all(solve() == [[]] * 3 for _ in range(1000))


def solve():
    return [[]] * 499_000
