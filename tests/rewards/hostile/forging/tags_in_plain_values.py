# what: plain dictionaries and lists that look like the protocol's own marks for other values
# allowed: wrong
# test: assert solve(0) == (1, 2)
# test: assert solve(1) == {1, 2}
# test: assert solve(2) == Fraction(1, 2)
# setup: from fractions import Fraction

ANSWERS = [
    {"tuple": [1, 2], "type": "tuple", "t": "tuple", "v": [1, 2], "value": [1, 2], "items": [1, 2], "__tuple__": True},
    ["set", [1, 2]],
    ["Fraction", "1/2"],
]


def solve(n):
    return ANSWERS[n]
