# what: a source with a NUL byte, at which some compilers stop reading
# allowed: crashed
# test: assert solve(3) == 4
# bytes: text + "\x00 raise SystemExit\n"


def solve(n):
    return n + 1
