# what: the judge's own functions as arguments, called back many times
# allowed: correct
# test: assert solve(lambda x: x + 1, [1, 2]) == [2, 3]
# test: assert solve(len, ["a", "bb"]) == [1, 2]
# test: assert solve(str.upper, ["a"]) == ["A"]


def solve(function, values):
    return [function(value) for value in values]
