# what: as many small live objects as 128 MB hold
# allowed: out_of_memory timeout
# test: assert solve() == 4
# seconds: 2
# memory_mb: 128
# needs: limits


def solve():
    parts = []
    while True:
        parts.append((object(), object(), []))
