# what: daemons that leave their parent, session and terminal, and answer nothing for 20 s
# allowed: forbidden crashed wrong
# test: assert solve() == "all of them outlive me"

import os
import time


def solve():
    for _ in range(10):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(20)
            os._exit(0)
    return "started"
