# what: builtin types as arguments and in answers
# allowed: correct
# test: assert solve([1, "a", 2.0, "b"], str) == ["a", "b"]
# test: assert solve([1, "a"], int) == [1]


def solve(values, kind):
    return [value for value in values if isinstance(value, kind)]
