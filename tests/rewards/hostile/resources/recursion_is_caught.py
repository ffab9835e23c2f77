# what: catches the RecursionError at every level, which takes exponential time
# allowed: timeout
# test: assert solve() == 4


def solve():
    try:
        solve()
    except RecursionError:
        solve()
    finally:
        solve()
