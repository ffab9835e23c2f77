# what: as many threads as the system gives, at most 5,000, each with a stack of its own
# allowed: crashed out_of_memory forbidden
# test: assert solve() == 5000
# needs: limits

import threading
import time


def solve():
    threading.stack_size(1 << 20)
    for _ in range(5_000):
        threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
    return 5000
