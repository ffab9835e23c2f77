# what: a list of 20,000 elements
# allowed: correct
# test: assert solve(20_000) == list(range(20_000))
# test: assert len(solve(20_000)) == 20_000


def solve(n):
    return [x for x in range(n)]
