# what: thirty threads that all wait for each other
# allowed: correct
# test: assert solve(30) == list(range(30))

import threading


def solve(n):
    barrier, met = threading.Barrier(n), []

    def meet(number):
        barrier.wait()
        met.append(number)

    threads = [threading.Thread(target=meet, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(met)
