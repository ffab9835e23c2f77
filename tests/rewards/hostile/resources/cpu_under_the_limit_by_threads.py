# what: threads that burn time together while the main one waits
# allowed: timeout
# test: assert solve() == 4

import threading


def burn():
    while True:
        pass


def solve():
    threads = [threading.Thread(target=burn, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
