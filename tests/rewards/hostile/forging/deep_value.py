# what: a value nested 5,000 deep, which recursive readers do not survive
# allowed: wrong crashed
# test: assert solve(3) == [[]]


def solve(n):
    value = []
    for _ in range(5_000):
        value = [value]
    return value
