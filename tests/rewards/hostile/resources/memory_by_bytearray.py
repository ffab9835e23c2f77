# what: one allocation of 4 GB that is touched
# allowed: out_of_memory
# test: assert solve() == 4 << 30
# needs: limits


def solve():
    return len(bytearray(b"x") * (4 << 30))
