# what: returns a number of two million bits, whose text would take the judge long
# allowed: wrong crashed timeout
# test: assert solve() == 4


def solve():
    return (1 << 2_000_000) - 1
