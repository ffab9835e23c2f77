# what: a generator, consumed by the test
# allowed: correct
# test: assert list(solve(4)) == [0, 1, 4, 9]
# test: assert sorted(solve(3)) == [0, 1, 4]
# test: assert sum(solve(3)) == 5


def solve(n):
    for x in range(n):
        yield x * x
