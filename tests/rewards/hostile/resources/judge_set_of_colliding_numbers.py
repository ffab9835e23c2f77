# what: 20,000 numbers of the same hash, where the test makes a set of them
# allowed: wrong timeout
# test: assert set(solve()) == {1}


def solve():
    return [number * ((1 << 61) - 1) for number in range(20_000)]
