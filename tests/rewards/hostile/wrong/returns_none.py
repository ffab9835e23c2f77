# what: prints the answer instead of returning it
# allowed: wrong
# test: assert solve(3) == 6


def solve(n):
    print(sum(range(n + 1)))
