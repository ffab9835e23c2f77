# what: a source of 100,000 brackets
# allowed: crashed out_of_memory
# test: assert solve() == 4
# bytes: text + "\nvalue = " + "(" * 100_000 + ")" * 100_000 + "\n"


def solve():
    return 4
