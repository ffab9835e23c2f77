# what: huge integers, negative ones and truth values, which are not 1 and 0
# allowed: correct
# test: assert solve(2, 10_000) == 2**10_000
# test: assert solve(10, 5_000) == 10**5_000
# test: assert solve(-3, 3) == -27
# test: assert positive(3) is True and positive(-3) is False
# test: assert type(solve(2, 2)) is int and type(positive(1)) is bool


def solve(n, power):
    return n**power


def positive(n):
    return n > 0
