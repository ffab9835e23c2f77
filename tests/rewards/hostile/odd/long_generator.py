# what: a generator of 20,000 values, all of which count
# allowed: correct
# test: assert sum(solve(20_000)) == 199990000
# test: assert len(list(solve(20_000))) == 20_000


def solve(n):
    yield from range(n)
