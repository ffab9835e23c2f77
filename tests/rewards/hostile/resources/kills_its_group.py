# what: kills its process group, which a PID namespace does not bound (only where it is in one)
# allowed: forbidden crashed
# test: assert solve() == 4

import os
import signal


def solve():
    if os.getpid() != 1 and os.getppid() != 0:
        raise RuntimeError("not in a PID namespace of its own")
    os.kill(0, signal.SIGKILL)
    raise RuntimeError("not killed")
