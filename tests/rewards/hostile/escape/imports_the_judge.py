# what: imports the modules of the grader
# allowed: crashed forbidden
# test: assert solve() is True


def solve():
    import rewards.sandbox

    return rewards.sandbox is not None
