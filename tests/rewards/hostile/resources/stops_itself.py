# what: stops itself, so that it neither ends nor uses time
# allowed: timeout forbidden crashed
# test: assert solve() == 4

import os
import signal


def solve():
    os.kill(os.getpid(), signal.SIGSTOP)
    raise RuntimeError("not stopped")
