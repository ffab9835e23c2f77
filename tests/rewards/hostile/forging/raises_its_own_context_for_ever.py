# what: exceptions whose chain of causes is a circle
# allowed: crashed timeout
# test: assert solve(3) == 4
# seconds: 1


def solve(n):
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    first.__context__, second.__context__ = second, first
    raise first
