# what: raises an exception class of its own that is named like a builtin, and catches it
# allowed: correct
# test: assert solve(0) == "none" and solve(1) == 1


class LookupError(Exception):
    def __init__(self, code):
        self.code = code


def solve(n):
    try:
        if n == 0:
            raise LookupError("none")
    except LookupError as error:
        return error.code
    return n
