# what: sends itself SIGALRM and SIGXCPU, as a runner's own alarm would
# allowed: crashed timeout forbidden
# test: assert solve() == 4

import os
import signal


def solve():
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    os.kill(os.getpid(), signal.SIGXCPU)
    while True:
        pass
