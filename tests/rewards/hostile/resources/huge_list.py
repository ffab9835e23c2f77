# what: a list of ten million numbers
# allowed: wrong crashed out_of_memory timeout
# test: assert solve() == [0]


def solve():
    return list(range(10_000_000))
