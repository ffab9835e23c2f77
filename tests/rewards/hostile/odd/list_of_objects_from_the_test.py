# what: a list of objects of the program's class as an argument
# allowed: correct
# test: assert longest([Pair(5, 24), Pair(15, 25), Pair(27, 40), Pair(50, 60)], 4) == 3
# entry: longest


class Pair(object):
    def __init__(self, a, b):
        self.a = a
        self.b = b


def longest(pairs, n):
    best = [1] * n
    for i in range(1, n):
        for j in range(i):
            if pairs[i].a > pairs[j].b:
                best[i] = max(best[i], best[j] + 1)
    return max(best)
