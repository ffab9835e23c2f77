# what: a source with a lone surrogate, which cannot be encoded
# allowed: crashed
# test: assert solve(3) == 5
# bytes: text + "text = '\ud800'\n"


def solve(n):
    return n + 1
