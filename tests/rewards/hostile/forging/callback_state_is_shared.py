# what: calls the test's function from threads at once, so that replies cross each other
# allowed: wrong crashed timeout
# test: assert solve(lambda x: x + 1) == list(range(1, 31))
# seconds: 1

import threading


def solve(function):
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(function(n))) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(0.005)
    return answers[:29]
