# what: threads, a lock, a queue and a pool of threads
# allowed: correct
# test: assert solve(20) == 190

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

lock = threading.Lock()


def solve(n):
    results = queue.Queue()
    threads = [threading.Thread(target=lambda x=x: results.put(x)) for x in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with lock, ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda _: results.get(), range(n)))
