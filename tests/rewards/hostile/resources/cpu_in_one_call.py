# what: one call into C that takes an hour and looks at no signal
# allowed: timeout
# test: assert solve() == 4


def solve():
    return sum(range(10**13))
