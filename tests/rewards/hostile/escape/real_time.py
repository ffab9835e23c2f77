# what: asks for the real-time scheduler, which starves the machine
# allowed: forbidden crashed
# test: assert solve() is None

import os


def solve():
    return os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
