# what: recursion to a depth of 900
# allowed: correct
# test: assert solve(900) == 900


def solve(n):
    return 0 if n == 0 else 1 + solve(n - 1)
