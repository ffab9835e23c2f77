# what: an iterator without end whose every member is a megabyte
# allowed: wrong crashed timeout out_of_memory
# test: assert list(solve()) == [0, 1, 2]
# needs: limits


def solve():
    while True:
        yield "x" * 1_000_000
