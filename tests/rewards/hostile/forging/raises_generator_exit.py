# what: raises GeneratorExit and KeyboardInterrupt, which handlers of Exception let through
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise GeneratorExit from KeyboardInterrupt()
