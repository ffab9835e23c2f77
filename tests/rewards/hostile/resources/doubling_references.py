# what: sixty lists, each of the one before twice: small here, endless where it is copied out
# allowed: wrong crashed out_of_memory timeout
# test: assert solve() == [4]


def solve():
    value = [4]
    for _ in range(60):
        value = [value, value]
    return value
