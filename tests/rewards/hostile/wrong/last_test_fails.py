# what: right in nineteen of twenty tests
# allowed: wrong
# test: assert [solve(n) for n in range(19)] == [n * n for n in range(19)]
# test: assert solve(19) == 361


def solve(n):
    return n * n if n < 19 else 0
