# what: small objects without end: dictionaries of dictionaries
# allowed: out_of_memory timeout
# test: assert solve() == 4
# seconds: 2
# memory_mb: 128
# needs: limits


def solve():
    values = {}
    for number in range(1 << 40):
        values[number] = {number: bytearray(20_000)}
