# what: an endless loop that catches whatever is raised into it
# allowed: timeout
# test: assert solve() == 4


def solve():
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
