# what: an endless loop
# allowed: timeout
# test: assert solve() == 4


def solve():
    while True:
        pass
