# what: sets the time of the machine (to what it is)
# allowed: forbidden crashed
# test: assert solve() is None

import time


def solve():
    return time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))
