# what: answers wrongly and leaves a thread for which the interpreter would wait at its end
# allowed: wrong
# test: assert solve() == 4

import threading
import time


def solve():
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return 3
