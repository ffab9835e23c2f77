# what: answers wrongly; its atexit handlers loop for ever and register more
# allowed: wrong
# test: assert solve() == 4

import atexit


def again():
    atexit.register(again)
    while True:
        pass


atexit.register(again)


def solve():
    return 3
