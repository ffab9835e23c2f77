# what: 20,000 threads with the smallest stacks, as far as they go
# allowed: crashed out_of_memory timeout
# test: assert solve() == 20_000
# needs: limits

import threading
import time


def solve():
    threading.stack_size(32_768)
    for _ in range(20_000):
        threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
    return 20_000
