# what: dictionary keys that cannot be encoded
# allowed: wrong
# test: assert solve(3) == {"four": 4}


def solve(n):
    return {"\udcff\x00": "\ud83d", ("\ud800",): 4}
