# what: an object whose release loops for ever
# allowed: timeout
# test: assert solve() == 4


class Endless:
    def __del__(self):
        while True:
            pass


def solve():
    Endless()
    return 4
