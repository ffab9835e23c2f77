# what: an exception whose text is a structure of doubling references
# allowed: crashed out_of_memory timeout
# test: assert solve() == 4


def solve():
    value = [4]
    for _ in range(60):
        value = [value, value]
    raise ValueError(value)
