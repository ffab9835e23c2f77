# what: a pattern that takes exponential time
# allowed: timeout
# test: assert solve() == 4

import re


def solve():
    return re.fullmatch(r"(a+)+b", "a" * 60)
