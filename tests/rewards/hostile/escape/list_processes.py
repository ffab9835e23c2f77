# what: looks for other processes of the machine and what they were called with
# allowed: wrong
# test: assert len(solve()) > 0

import os


def solve():
    found = []
    for process in range(1, 3_000):
        if process != os.getpid():
            try:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    found.append(file.read())
            except OSError:
                continue
    return found
