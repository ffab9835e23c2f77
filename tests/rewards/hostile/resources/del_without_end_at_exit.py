# what: answers wrongly; what is left at the end of the interpreter loops for ever
# allowed: wrong
# test: assert solve() == 4


class Endless:
    def __del__(self):
        while True:
            pass


endless = Endless()


def solve():
    return 3
