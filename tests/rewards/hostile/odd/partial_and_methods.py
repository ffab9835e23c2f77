# what: entry points that are a partial, a bound method and a static one
# allowed: correct
# test: assert solve(3) == 4
# test: assert bound(3) == 4
# test: assert static(3) == 4

import functools
import operator


class Adder:
    def add(self, n):
        return n + 1

    @staticmethod
    def plus(n):
        return n + 1


solve = functools.partial(operator.add, 1)
bound = Adder().add
static = Adder.plus
