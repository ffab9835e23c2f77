# what: an expression with 200,000 additions
# allowed: crashed out_of_memory timeout
# test: assert solve() == 5
# bytes: text + "\nvalue = " + "+".join(["n"] * 200_000) + "\n"

n = 1


def solve():
    return 4
