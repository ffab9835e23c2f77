# what: decorators with and without arguments, wraps and a property
# allowed: correct
# test: assert solve(3) == 13

import functools


def times(factor):
    def decorate(function):
        @functools.wraps(function)
        def inner(*arguments, **named):
            return factor * function(*arguments, **named)

        return inner

    return decorate


def plus_one(function):
    return lambda n: function(n) + 1


@plus_one
@times(4)
def solve(n):
    return n
