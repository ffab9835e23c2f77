# what: kills every process that it can reach (only where it is the first of its PID namespace)
# allowed: forbidden crashed
# test: assert solve() == 4

import os
import signal


def solve():
    if os.getpid() != 1:
        raise RuntimeError("not in a PID namespace of its own")
    os.kill(-1, signal.SIGKILL)
    raise RuntimeError("not killed")
