# what: looks for processes that it may send signals to
# allowed: wrong forbidden
# test: assert len(solve()) > 1

import os


def solve():
    found = []
    for process in range(1, 1_000):
        if process != os.getpid():
            try:
                os.kill(process, 0)
                found.append(process)
            except OSError:
                continue
    return found
