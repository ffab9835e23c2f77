# what: cancels every timer and alarm, and asks for its own at the end of time
# allowed: timeout
# test: assert solve() == 4

import signal


def solve():
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_REAL, 100_000)
    while True:
        pass
