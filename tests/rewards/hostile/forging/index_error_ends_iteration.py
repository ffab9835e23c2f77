# what: an object without __iter__ whose __getitem__ raises IndexError: an empty sequence, in which all is well
# allowed: crashed wrong
# test: for pair in solve(3): assert pair == (1, 2)
# test: assert solve(3)[0] == (1, 2)


class Empty:
    def __getitem__(self, index):
        raise IndexError


def solve(n):
    return Empty()
