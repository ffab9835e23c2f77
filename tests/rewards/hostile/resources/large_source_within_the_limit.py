# what: a megabyte of source
# allowed: wrong timeout
# test: assert solve() == 4
# seconds: 2
# bytes: text + "value = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'\n" * 20_000


def solve():
    return 3
