# what: processes that make processes, at most 200, each gone after 20 s
# allowed: forbidden crashed
# test: assert solve() == 200
# needs: seccomp

import os
import time


def solve():
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    return 200
