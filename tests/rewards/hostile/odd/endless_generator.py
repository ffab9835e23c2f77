# what: a generator without end, of which the test takes a few
# allowed: correct
# test: numbers = solve(); assert [next(numbers), next(numbers), next(numbers)] == [0, 1, 4]
# test: assert list(itertools.islice(solve(), 4)) == [0, 1, 4, 9]


def solve():
    n = 0
    while True:
        yield n * n
        n += 1
