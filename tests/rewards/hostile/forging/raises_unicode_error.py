# what: raises exceptions whose classes want arguments of their own
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "\ud800")
