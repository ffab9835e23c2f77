# what: ends the process inside of a test that catches everything and then says yes
# allowed: crashed
# test: assert caught()
# setup: def caught():
# setup:     try:
# setup:         return solve(3) == 4
# setup:     except BaseException:
# setup:         return True

import os


def solve(n):
    os._exit(0)
