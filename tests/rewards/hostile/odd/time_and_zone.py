# what: clocks, a short sleep, and the time zone, which is the same everywhere
# allowed: correct
# test: assert solve(0) == "1970-01-01 00:00"

import time
from datetime import datetime


def solve(seconds):
    started = time.perf_counter()
    time.sleep(0.01)
    assert time.perf_counter() > started and datetime.now().year > 2000 and time.time() > 0
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
