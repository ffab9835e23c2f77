# what: kills itself as the kernel kills for memory
# allowed: crashed out_of_memory forbidden
# test: assert solve() == 4

import os
import signal


def solve():
    os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError("not killed")
