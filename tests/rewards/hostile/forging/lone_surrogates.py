# what: text with lone surrogates, NUL and line ends, which not every channel survives
# allowed: wrong
# test: assert solve(3) == "four"


def solve(n):
    return "\ud800\x00\n\r\u2028\udfff four"
