# what: a source with 100,000 minus signs in a row, against the recursion of the compiler
# allowed: crashed out_of_memory
# test: assert solve() == 5
# bytes: text + "\nvalue = " + "-" * 100_000 + "4\n"


def solve():
    return 4
