# what: a list nested 100,000 deep
# allowed: wrong crashed
# test: assert solve() == [[]]


def solve():
    value = []
    for _ in range(100_000):
        value = [value]
    return value
