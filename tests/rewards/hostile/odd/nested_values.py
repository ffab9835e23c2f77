# what: values nested 90 deep and of mixed kinds, with tuples and lists kept apart
# allowed: correct
# test: assert solve(2) == [[()]] and solve(2) != [[[]]]
# test: assert str(solve(90)) == "[" * 90 + "()" + "]" * 90
# test: assert mixed() == ([1, (2.0, {"a": {3}})], None, True, "x")


def solve(depth):
    value = ()
    for _ in range(depth):
        value = [value]
    return value


def mixed():
    return [1, (2.0, {"a": {3}})], None, True, "x"
