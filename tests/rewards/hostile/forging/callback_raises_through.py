# what: makes the judge's own function raise AssertionError in the judge
# allowed: wrong crashed
# test: assert solve(f) == 4
# setup: def f(x):
# setup:     assert x == "never"
# setup:     return 4


def solve(check):
    try:
        check("something")
    except BaseException:
        return "swallowed"
    return "went through"
