# what: ten million bytes of source
# allowed: crashed
# test: assert solve() == 4
# bytes: text + "value = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'\n" * 200_000


def solve():
    return 3
