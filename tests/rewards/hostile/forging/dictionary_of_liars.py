# what: a plain dictionary with a lying value under the right key
# allowed: wrong
# test: assert solve(3) == {"a": 4}


class Liar:
    def __eq__(self, other):
        return True


def solve(n):
    return {"a": Liar()}
