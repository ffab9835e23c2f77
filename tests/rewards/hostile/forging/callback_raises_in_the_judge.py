# what: makes the test's function raise in the judge and goes on as if nothing were
# allowed: wrong crashed
# test: assert solve(lambda x: 1 / x) == 4


def solve(function):
    try:
        function(0)
    except BaseException:
        pass
    return 4 if function is None else 3
