# what: the entry point is an object with __call__
# allowed: correct
# test: assert solve(3) == 4
# test: assert solve(4) == 5


class Adder:
    def __init__(self, amount):
        self.amount = amount

    def __call__(self, n):
        return n + self.amount


solve = Adder(1)
