# what: lru_cache, cache and cached_property
# allowed: correct
# test: assert solve(80) == 23416728348467685

from functools import cache, cached_property, lru_cache


@lru_cache(maxsize=None)
def solve(n):
    return n if n < 2 else solve(n - 1) + solve(n - 2)


@cache
def other(n):
    return n


class Lazy:
    @cached_property
    def value(self):
        return other(1)


assert Lazy().value == 1
