# what: dictionaries with keys of every kind, in order
# allowed: correct
# test: assert solve() == {1: "int", (1, 2): "tuple", "1": "text", None: "none", 2.5: "float", frozenset({1}): "set"}
# test: assert list(solve())[:3] == [1, (1, 2), "1"]
# test: assert {True: 1} == truth() and list(truth()) == [True] and list(truth())[0] is True


def solve():
    return {1: "int", (1, 2): "tuple", "1": "text", None: "none", 2.5: "float", frozenset([1]): "set"}


def truth():
    return {True: 1}
