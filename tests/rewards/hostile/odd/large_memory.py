# what: a table of 100 MB for a moment, which is within its memory
# allowed: correct
# test: assert solve() == 100_000_000


def solve():
    return len(bytearray(100_000_000))
