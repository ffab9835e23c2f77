# what: a text on which the test's own pattern takes exponential time
# allowed: timeout crashed
# test: assert re.fullmatch(r"(a+)+b", solve())


def solve():
    return "a" * 60
