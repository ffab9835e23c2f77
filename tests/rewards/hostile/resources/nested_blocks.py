# what: a source with 1,000 nested blocks
# allowed: crashed out_of_memory
# test: assert solve() == 4
# bytes: text + "".join("\n" + " " * depth + "if True:" for depth in range(1_000)) + " pass\n"


def solve():
    return 4
