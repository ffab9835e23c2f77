# what: methods that return their object, chained by the test
# allowed: correct
# test: assert Counter(3).add(1).add(2).total == 6
# entry: Counter


class Counter:
    def __init__(self, total):
        self.total = total

    def add(self, n):
        self.total += n
        return self
