# what: a text of 50 million characters
# allowed: wrong crashed out_of_memory
# test: assert solve(3) == "4"


def solve(n):
    return "4" * 50_000_000
