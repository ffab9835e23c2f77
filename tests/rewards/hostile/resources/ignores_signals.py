# what: ignores and blocks every signal that may end it, then loops
# allowed: timeout
# test: assert solve() == 4

import signal

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))


def solve():
    while True:
        pass
