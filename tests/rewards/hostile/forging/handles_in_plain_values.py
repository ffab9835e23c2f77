# what: dictionaries that look like a reference to one of the judge's objects
# allowed: wrong
# test: assert solve(0) == 4
# test: assert solve(1) == 4


def solve(n):
    return {"handle": n, "ref": n, "id": n, "callable": n, "$": n, "type": "handle", "t": "h", "v": n}
