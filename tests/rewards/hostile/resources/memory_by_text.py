# what: a text that doubles, to at most 8 GB
# allowed: out_of_memory
# test: assert solve() == 1 << 33
# seconds: 2
# memory_mb: 128
# needs: limits


def solve():
    text = "x"
    while len(text) < 1 << 33:
        text = text + text
    return len(text)
