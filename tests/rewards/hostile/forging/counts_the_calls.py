# what: gives another answer at each call, in the hope that the same one is asked twice
# allowed: wrong
# test: assert solve(3) == 4 and solve(3) == 4
# test: assert [solve(3) for _ in range(20)] == [4] * 20

calls = [0]


def solve(n):
    calls[0] += 1
    return calls[0]
