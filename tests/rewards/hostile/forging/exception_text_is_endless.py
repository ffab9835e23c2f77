# what: an exception whose text loops for ever
# allowed: crashed timeout
# test: assert solve(3) == 4
# seconds: 1


class Endless(Exception):
    def __str__(self):
        while True:
            pass

    __repr__ = __str__


def solve(n):
    raise Endless()
