# what: a list that contains itself, and a dictionary that does
# allowed: wrong crashed
# test: assert solve(3) == [1]


def solve(n):
    value = {}
    value["self"] = [value]
    return [value]
