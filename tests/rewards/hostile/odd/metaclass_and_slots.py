# what: a metaclass, slots, descriptors, operators and context managers, all honest
# allowed: correct
# test: assert solve(3, 4) == [7, 12]

from contextlib import contextmanager


class Registry(type):
    known = []

    def __new__(mcs, name, bases, space):
        cls = super().__new__(mcs, name, bases, space)
        mcs.known.append(name)
        return cls


class Number(metaclass=Registry):
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Number(self.n + other.n)

    def __mul__(self, other):
        return Number(self.n * other.n)

    def __eq__(self, other):
        return self.n == other.n


@contextmanager
def numbers(*values):
    yield [Number(value) for value in values]


def solve(a, b):
    with numbers(a, b) as (x, y):
        assert x != y and Registry.known == ["Number"]
        return [(x + y).n, (x * y).n]
