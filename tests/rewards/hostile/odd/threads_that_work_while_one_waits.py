# what: the main thread waits longer than its idle seconds while another computes: it is not idle
# allowed: correct
# test: assert solve(2_000_000) == 1999999000000
# seconds: 2

import threading


def solve(n):
    answer = []
    thread = threading.Thread(target=lambda: answer.append(sum(x for x in range(n))))
    thread.start()
    thread.join()
    return answer[0]
