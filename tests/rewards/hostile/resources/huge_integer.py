# what: a power tower
# allowed: timeout out_of_memory
# test: assert solve() == 4


def solve():
    return 9**9**9
